//! What several sheets show in the same way.

use domain::{
    Bucket, Defence,
    compensation::{CompensationAction, Finding},
    view::Window,
};
use leptos::prelude::*;
use leptos_router::params::ParamsMap;

use crate::{
    clock,
    text::{sheet_words, words},
};

/// A time: stored before hydration, then the reader's own. `show` is `ago`, `short` or `second`.
pub(super) fn when(at: &str, show: &'static str) -> impl IntoView + use<> {
    view! { <time datetime=at.to_owned() data-show=show title=at.to_owned()>{clock::plain(at)}</time> }
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
            <select name=name>
                <option value="">{sheet_words().any}</option>
                {options.collect_view()}
            </select>
        </label>
    }
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
            <input name=name value=value autocomplete="off" spellcheck="false"/>
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

/// The word for an outcome.
pub(super) fn outcome_word(outcome: Bucket) -> &'static str {
    let words = words();
    match outcome {
        Bucket::New => words.bucket_new,
        Bucket::Reused => words.bucket_reused,
        Bucket::Processing => words.bucket_processing,
        Bucket::Unknown => words.bucket_unknown,
        Bucket::Mismatch => words.bucket_mismatch,
        Bucket::ConstraintConflict => words.bucket_conflict,
    }
}

/// The word for a defence.
pub(super) fn defence_word(defence: Defence) -> &'static str {
    let words = sheet_words();
    match defence {
        Defence::None => words.defence_none,
        Defence::Cache => words.defence_cache,
        Defence::InFlight => words.defence_in_flight,
        Defence::Record => words.defence_record,
        Defence::Constraint => words.defence_constraint,
        Defence::FrontLock => words.defence_front_lock,
    }
}

/// The word for a window.
pub(super) const fn window_word(window: Window) -> fn(&crate::text::Words) -> &'static str {
    match window {
        Window::FiveMinutes => |w| w.window_5m,
        Window::OneHour => |w| w.window_1h,
        Window::OneDay => |w| w.window_24h,
        Window::OneWeek => |w| w.window_7d,
    }
}

/// The word for an action on a record.
pub(super) fn action_word(action: CompensationAction) -> &'static str {
    let words = sheet_words();
    match action {
        CompensationAction::Verify => words.act_verify,
        CompensationAction::Complete => words.act_complete,
        CompensationAction::Release => words.act_release,
        CompensationAction::ReExecute => words.act_re_execute,
        CompensationAction::Fail => words.act_fail,
    }
}

/// What an action leads to.
pub(super) fn consequence(action: CompensationAction) -> &'static str {
    let words = sheet_words();
    match action {
        CompensationAction::Verify => words.does_verify,
        CompensationAction::Complete => words.does_complete,
        CompensationAction::Release => words.does_release,
        CompensationAction::ReExecute => words.does_re_execute,
        CompensationAction::Fail => words.does_fail,
    }
}

/// Whether an action ends the record, so that nothing undoes it.
pub(super) const fn is_final(action: CompensationAction) -> bool {
    matches!(
        action,
        CompensationAction::Complete | CompensationAction::Fail
    )
}

/// What was found, in words.
pub(super) fn finding_word(finding: Finding) -> &'static str {
    let words = sheet_words();
    match finding {
        Finding::Present => words.found_present,
        Finding::Other => words.found_other,
        Finding::Absent => words.found_absent,
        Finding::NotKnown => words.found_not_known,
    }
}

/// Why something was not done, by its code.
pub(super) fn refusal_word(code: &str) -> &'static str {
    let words = sheet_words();
    match code {
        "stale" => words.refused_stale,
        "already-terminal" => words.refused_terminal,
        "evidence-forbids" => words.refused_evidence,
        "reason" => words.refused_reason,
        "second-person" => words.refused_second_person,
        "decided" => words.refused_decided,
        "not-dead" => words.refused_not_dead,
        "gone" => words.refused_gone,
        "key" => words.refused_key,
        "size" => words.refused_size,
        _ => words.refused_for_now,
    }
}

/// A duration in milliseconds.
pub(super) fn milliseconds(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{} ms", crate::text::grouped(ms.round() as i64))
    }
}
