//! What several sheets show in the same way.

use domain::view::Window;
use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use strum::VariantArray;

use crate::{
    clock,
    components::Empty,
    ops::glance::window_word,
    text::{sheet_words, words},
};

/// A time: stored before hydration, then the reader's own. `show` is `ago`, `short` or `second`.
pub(super) fn when(at: &str, show: &'static str) -> impl IntoView + use<> {
    // Where only an age is shown, the exact time is reached by the keyboard too.
    let focus = (show == "ago").then_some("0");
    view! { <time datetime=at.to_owned() data-show=show tabindex=focus title=at.to_owned()>{clock::plain(at)}</time> }
}

/// A text of somebody else, exact and harmless: whatever turns the direction of writing stays within it, and what cannot be seen is
/// named.
pub(super) fn odd(text: &str) -> impl IntoView + use<> {
    let mut parts: Vec<AnyView> = Vec::new();
    let mut seen = String::new();
    for c in text.chars() {
        if !is_unseen(c) {
            seen.push(c);
            continue;
        }
        // An empty text would be drawn as a space.
        if !seen.is_empty() {
            parts.push(std::mem::take(&mut seen).into_any());
        }
        let name = format!("U+{:04X}", u32::from(c));
        parts.push(view! { <span class="unseen">{name}</span> }.into_any());
    }
    if !seen.is_empty() {
        parts.push(seen.into_any());
    }
    view! { <span class="odd">{parts}</span> }
}

/// Whether a character shows nothing itself, or changes how others are shown; those that join emoji and letters are left.
fn is_unseen(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A line of a list: what it is about, and its cells.
pub(super) struct Line {
    pub(super) id: String,
    pub(super) cells: Vec<AnyView>,
}

/// A list as a table; where there is little room each line is a card. A column has its name and its class; `label` is the id of the
/// heading.
pub(super) fn list(
    label: &'static str,
    columns: &[(&'static str, &'static str)],
    lines: Vec<Line>,
    empty: &'static str,
) -> AnyView {
    if lines.is_empty() {
        return view! { <Empty text=empty/> }.into_any();
    }
    let heads = columns.iter().map(|&(name, class)| {
        view! { <th role="columnheader" scope="col" class=class>{name}</th> }
    });
    let lines = lines.into_iter().map(|line| {
        let cells = columns
            .iter()
            .zip(line.cells)
            .map(|(&(name, class), cell)| {
                view! { <td role="cell" class=class data-label=name><div>{cell}</div></td> }
            });
        view! { <tr role="row" data-row=line.id>{cells.collect_view()}</tr> }
    });
    view! {
        <div class="scroll" role="group" tabindex="0" aria-labelledby=label>
            <table role="table" class="plain-table rows-table" aria-labelledby=label>
                <thead role="rowgroup"><tr role="row">{heads.collect_view()}</tr></thead>
                <tbody role="rowgroup">{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// The link to a record.
pub(super) fn record_link(id: &str) -> impl IntoView + use<> {
    let text = crate::text::fill(sheet_words().record_title, &[("id", id)]);
    view! { <a href=format!("/records/{id}")>{text}</a> }
}

/// An address with a query; absent values are left out.
pub(super) fn address(path: &str, pairs: &[(&'static str, Option<String>)]) -> String {
    let mut query = ParamsMap::new();
    for (name, value) in pairs {
        if let Some(value) = value {
            query.insert(*name, value.clone());
        }
    }
    format!("{path}{}", query.to_query_string())
}

/// A button that copies a text; it is seen once a script can do so.
pub(super) fn copy(text: String) -> impl IntoView {
    let words = sheet_words();
    view! {
        <button type="button" class="plain copy js-only" data-copy=text>
            <span class="copy-do">{words.copy}</span><span class="copy-done">{words.copied}</span>
        </button>
    }
}

/// The links to the pages before and after this one.
pub(super) fn pager(prev: Option<String>, next: Option<String>) -> impl IntoView {
    let words = sheet_words();
    let link = |href: Option<String>, name: &'static str, rel: &'static str| {
        href.map(|href| view! { <a href=href rel=rel>{name}</a> })
    };
    (prev.is_some() || next.is_some()).then(|| {
        view! {
            <nav class="pager" aria-label=words.pages>
                {link(prev, words.newer_page, "prev")} {link(next, words.older_page, "next")}
            </nav>
        }
    })
}

/// A choice within a form.
pub(super) fn choice(
    name: &'static str,
    label: &'static str,
    chosen: Option<String>,
    options: Vec<(String, String)>,
) -> impl IntoView {
    let options = options.into_iter().map(|(value, text)| {
        let selected = chosen.as_deref() == Some(&value);
        view! { <option value=value selected=selected>{text}</option> }
    });
    view! {
        <label>
            <span>{label}</span>
            <select name=name id=format!("filter-{name}")>
                <option value="">{words().any}</option>
                {options.collect_view()}
            </select>
        </label>
    }
}

/// The end of a form that filters: the button, and the way back to everything.
pub(super) fn do_filter(clear: Option<&'static str>) -> impl IntoView {
    let clear = clear.map(|path| view! { <a href=path>{sheet_words().clear_filter}</a> });
    view! { <div class="filter-do"><button class="primary">{words().filter}</button> {clear}</div> }
}

/// The choice of a window within a form.
pub(super) fn windows(chosen: Option<Window>) -> impl IntoView {
    let words = words();
    let options = Window::VARIANTS
        .iter()
        .map(|w| (w.to_string(), window_word(*w, words).to_owned()));
    let chosen = chosen.map(|w| w.to_string());
    choice("window", words.ops.window_label, chosen, options.collect())
}

/// A text within a form.
pub(super) fn field(
    name: &'static str,
    label: &'static str,
    value: Option<String>,
    class: &'static str,
) -> impl IntoView {
    view! {
        <label class=class>
            <span>{label}</span>
            <input name=name id=format!("filter-{name}") value=value autocomplete="off" spellcheck="false"/>
        </label>
    }
}

/// A message about what was just done.
pub(super) fn notice(is_good: bool, text: String) -> impl IntoView {
    let class = if is_good {
        "notice notice-good"
    } else {
        "notice notice-bad"
    };
    view! { <p class=class id="done" role="status" tabindex="-1">{text}</p> }
}

/// A duration in milliseconds.
pub(super) fn milliseconds(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{} ms", crate::text::grouped(ms.round() as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::{is_unseen, odd};
    use leptos::prelude::*;

    #[test]
    fn odd_text_is_named_where_it_cannot_be_seen_and_escaped_everywhere() {
        let html = odd("a\u{202e}<b>\0 👩\u{200d}🚀").to_html();
        assert!(html.contains("U+202E") && html.contains("U+0000"), "{html}");
        assert!(
            html.contains("&lt;b&gt;") && html.contains("👩\u{200d}🚀"),
            "{html}"
        );
        assert!(!is_unseen('\n') && !is_unseen('ز'));
    }
}
