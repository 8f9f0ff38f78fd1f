//! What kind of device sent something, told by the name of its installation: `web-chrome-android-…` for a browser.
//!
//! The name is given once, when a browser comes for the first time, and is a help for people, never a proof of anything.

use crate::text::{Words, fill};

/// Parts of a user agent, in the order in which they decide: many browsers also name those that they descend from.
const BROWSERS: &[(&str, &str, &str)] = &[
    ("MicroMessenger", "wechat", "WeChat"),
    ("Edg", "edge", "Edge"),
    ("OPR", "opera", "Opera"),
    ("SamsungBrowser", "samsung", "Samsung Internet"),
    ("Firefox", "firefox", "Firefox"),
    ("FxiOS", "firefox", "Firefox"),
    ("Chrome", "chrome", "Chrome"),
    ("CriOS", "chrome", "Chrome"),
    ("Safari", "safari", "Safari"),
];
const SYSTEMS: &[(&str, &str, &str)] = &[
    ("Android", "android", "Android"),
    ("iPhone", "iphone", "iPhone"),
    ("iPad", "ipad", "iPad"),
    ("Windows", "windows", "Windows"),
    ("Mac OS X", "mac", "Mac"),
    ("CrOS", "chromeos", "ChromeOS"),
    ("Linux", "linux", "Linux"),
];
/// Stands for what is not known.
const OTHER: &str = "other";

/// Browser and system of a user agent, as they stand in the name of an installation.
#[cfg_attr(
    not(feature = "ssr"),
    expect(dead_code, reason = "names are given by the server")
)]
pub(crate) fn slug(user_agent: &str) -> String {
    let find = |list: &[(&str, &'static str, &str)]| {
        let found = list.iter().find(|(part, ..)| user_agent.contains(part));
        found.map_or(OTHER, |(_, slug, _)| *slug)
    };
    format!("{}-{}", find(BROWSERS), find(SYSTEMS))
}

/// Where something was sent from, for the person at the installation `own`.
pub(crate) fn place(words: &Words, client_id: Option<&str>, own: &str) -> String {
    let Some(client_id) = client_id else {
        return words.device_other.to_owned();
    };
    if client_id == own {
        return words.device_this.to_owned();
    }
    let mut parts = client_id.split('-');
    let known = (parts.next() == Some("web"))
        .then(|| {
            Some((
                name(BROWSERS, parts.next()?)?,
                name(SYSTEMS, parts.next()?)?,
            ))
        })
        .flatten();
    match known {
        Some((browser, system)) => fill(
            words.device_browser,
            &[("browser", browser), ("system", system)],
        ),
        None => words.device_other.to_owned(),
    }
}

fn name(list: &[(&str, &str, &'static str)], slug: &str) -> Option<&'static str> {
    let found = list.iter().find(|(_, known, _)| *known == slug);
    found.map(|(.., name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Lang;

    #[test]
    fn a_device_is_named_as_its_owner_would() {
        let phone =
            "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130 Mobile Safari/537.36";
        assert_eq!(slug(phone), "chrome-android");
        assert_eq!(slug("curl/8"), "other-other");
        let words = Lang::En.words();
        let named = |client: &str| place(words, Some(client), "web-own");
        assert_eq!(named("web-own"), words.device_this);
        assert_eq!(named("web-chrome-android-0f4b"), "Chrome on Android");
        for unknown in [
            "web-0f4b3a52-1d1c",
            "mini-program-7",
            "web",
            "web-other-other-1",
        ] {
            assert_eq!(named(unknown), words.device_other, "{unknown}");
        }
    }
}
