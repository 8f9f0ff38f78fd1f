//! Addresses inside this site.

/// The sign-in, which leads back to a page of this site.
pub(crate) fn sign_in(next: &str) -> String {
    format!("/?next={}", escape(next))
}

/// A path of this site and nothing else: anything else would send people to strangers.
pub fn own(path: &str) -> Option<&str> {
    let ours = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains('\\')
        && path.chars().all(|c| c.is_ascii_graphic());
    ours.then_some(path)
}

/// A text as a value in an address.
pub(crate) fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let each = text.bytes().map(|byte| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_another_site_is_none() {
        assert_eq!(own("/tasks/1?a=b"), Some("/tasks/1?a=b"));
        for other in [
            "",
            "tasks",
            "//evil.example",
            "/\\evil.example",
            "/a\nb",
            "https://evil.example",
        ] {
            assert_eq!(own(other), None, "{other:?}");
        }
    }

    #[test]
    fn what_follows_a_sign_in_is_one_parameter() {
        assert_eq!(sign_in("/tasks/1?a=b&c"), "/?next=/tasks/1%3Fa%3Db%26c");
    }
}
