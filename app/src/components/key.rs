//! A long key, cut in the middle: its beginning says what it is for, its end which one it is.

use leptos::prelude::*;

/// Characters that are kept at the end.
const TAIL: usize = 10;
/// The longest key that is shown whole.
const WHOLE: usize = 34;

/// A key in monospace; the whole of it is read to screen readers and shown on hover.
#[component]
pub(crate) fn CutKey(
    /// The key.
    #[prop(into)]
    key: String,
) -> impl IntoView {
    let shown = cut(&key);
    let whole =
        (shown != key).then(|| view! { <span class="visually-hidden">{key.clone()}</span> });
    let hidden = whole.is_some().then_some("true");
    view! { <code class="key" title=key><span aria-hidden=hidden>{shown}</span>{whole}</code> }
}

fn cut(key: &str) -> String {
    // Keys are printable ASCII, but text is cut by characters all the same: nothing here may panic.
    let chars: Vec<char> = key.chars().collect();
    if chars.len() <= WHOLE {
        return key.to_owned();
    }
    let head: String = chars[..WHOLE - TAIL - 1].iter().collect();
    let tail: String = chars[chars.len() - TAIL..].iter().collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn keys_are_cut_in_the_middle() {
        assert_eq!(cut("task_submit:7:12:1:c"), "task_submit:7:12:1:c");
        assert_eq!(
            cut("task_submit:7:12:1:web-0f4b3a52-1d1c-4e8e-9a2f-0123456789ab"),
            "task_submit:7:12:1:web-…23456789ab"
        );
    }
}
