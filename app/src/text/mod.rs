//! The words of the pages. They stand in [`en`] and [`zh`] and nowhere else; a word that one of them lacks does not compile.
//!
//! The language is chosen by the server (cookie `lang`, else `Accept-Language`) and written to `<html lang>`, which is
//! what the browser reads: both sides always agree, so hydration cannot mismatch. A change of language is a form post and
//! a new page, which works without JavaScript too.

mod en;
mod zh;

use domain::RecordState;
use leptos::prelude::*;

pub(crate) use en::Words;

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese, simplified.
    Zh,
}

impl Lang {
    /// The language tag, for `<html lang>` and the browser's `Intl`.
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh-CN",
        }
    }

    /// The words of this language.
    pub(crate) const fn words(self) -> &'static Words {
        match self {
            Self::En => &en::EN,
            Self::Zh => &zh::ZH,
        }
    }

    /// The language of a tag such as `zh-Hans-CN`.
    pub(crate) fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_', ';']).next()?;
        match primary.to_ascii_lowercase().as_str() {
            "en" => Some(Self::En),
            "zh" => Some(Self::Zh),
            _ => None,
        }
    }
}

/// The language of the page that is being rendered.
pub(crate) fn lang() -> Lang {
    use_context().unwrap_or_default()
}

/// The words of the page that is being rendered.
pub(crate) fn words() -> &'static Words {
    lang().words()
}

/// The words of the sheet that is being written.
#[cfg(feature = "ssr")]
pub(crate) fn sheet_words() -> &'static en::SheetWords {
    match lang() {
        Lang::En => &en::SHEET_EN,
        Lang::Zh => &zh::SHEET_ZH,
    }
}

/// Finds the language of this page: see the module.
#[cfg(feature = "ssr")]
pub(crate) fn detect() -> Lang {
    let Some(parts) = use_context::<axum::http::request::Parts>() else {
        return Lang::default();
    };
    let header = |name| parts.headers.get(name).and_then(|v| v.to_str().ok());
    crate::request::cookie(&parts, "lang")
        .as_deref()
        .and_then(Lang::from_tag)
        .or_else(|| {
            header(axum::http::header::ACCEPT_LANGUAGE)?
                .split(',')
                .find_map(Lang::from_tag)
        })
        .unwrap_or_default()
}

/// Finds the language of this page: see the module.
#[cfg(not(feature = "ssr"))]
pub(crate) fn detect() -> Lang {
    document()
        .document_element()
        .and_then(|html| html.get_attribute("lang"))
        .and_then(|tag| Lang::from_tag(&tag))
        .unwrap_or_default()
}

/// Puts values into the `{name}` places of a text.
pub(crate) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

impl Words {
    /// The word for a state.
    pub(crate) const fn state(&self, state: RecordState) -> &'static str {
        match state {
            RecordState::Processing => self.state_processing,
            RecordState::Succeeded => self.state_succeeded,
            RecordState::FailedFinal => self.state_failed_final,
            RecordState::FailedRetryable => self.state_failed_retryable,
            RecordState::Unknown => self.state_unknown,
        }
    }

    /// Why a submission was refused, in words for the person who wrote it.
    pub(crate) fn refusal(&self, code: &str) -> &'static str {
        match code {
            "already-submitted" => self.refused_already_submitted,
            "task-closed" => self.refused_task_closed,
            "task-not-assigned" | "not-found" => self.refused_task_not_assigned,
            "version-not-current" => self.refused_version_not_current,
            "key-reused" => self.refused_key_reused,
            "body-too-large" => self.refused_body_too_large,
            "invalid-body" => self.refused_invalid_body,
            _ => self.refused_other,
        }
    }

    /// Why a task was not made, in words for the teacher.
    pub(crate) fn task_refusal(&self, code: &str) -> &'static str {
        match code {
            "title" => self.task_refused_title,
            "instructions" => self.task_refused_instructions,
            "time" => self.task_refused_time,
            "closes-before-due" => self.task_refused_order,
            "closed-already" => self.task_refused_closed,
            "key-reused" | "key-invalid" => self.task_refused_key,
            "not-found" => self.task_refused_class,
            _ => self.task_refused_failed,
        }
    }

    /// Why a redemption was refused, in words for the student.
    pub(crate) fn reward_refusal(&self, code: &str) -> &'static str {
        match code {
            "insufficient-points" => self.reward_insufficient,
            "redemption-in-progress" => self.reward_in_progress,
            "reward-refused" => self.reward_refused,
            "sequence-not-current" | "reward-not-found" => self.reward_changed,
            "rewards-unavailable" => self.rewards_unavailable,
            "closed-by-admin" => self.reward_closed,
            _ => self.reward_refused_other,
        }
    }

    /// A length of time, in at most two units.
    pub(crate) fn duration(&self, seconds: i64) -> String {
        let n = |text: &str, n: i64| fill(text, &[("n", &n.to_string())]);
        // Clocks of two machines may differ by a little; a negative age is never shown.
        match seconds.max(0) {
            s @ 0..60 => n(self.seconds, s),
            s @ 60..3_600 => n(self.minutes, s / 60),
            s @ 3_600..86_400 => join(n(self.hours, s / 3_600), s % 3_600 / 60, |m| {
                n(self.minutes, m)
            }),
            s => join(n(self.days, s / 86_400), s % 86_400 / 3_600, |h| {
                n(self.hours, h)
            }),
        }
    }
}

fn join(large: String, rest: i64, small: impl Fn(i64) -> String) -> String {
    if rest == 0 {
        large
    } else {
        format!("{large} {}", small(rest))
    }
}

/// A whole number with its thousands set apart, the same in both languages.
pub(crate) fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::from(if n < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with so many decimal places, without the float formatting of the standard library, which the browser would have to
/// load for this alone.
pub(crate) fn decimal(value: f64, places: u32) -> String {
    let unit = 10_i64.pow(places);
    let scaled = (value * unit as f64).round() as i64;
    let (whole, part) = (scaled / unit, (scaled % unit).unsigned_abs());
    let sign = if scaled < 0 && whole == 0 { "-" } else { "" };
    if places == 0 {
        return format!("{sign}{whole}");
    }
    let part = part.to_string();
    let zeros = "0".repeat((places as usize).saturating_sub(part.len()));
    format!("{sign}{whole}.{zeros}{part}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_rounded_and_padded() {
        assert_eq!(decimal(0.05, 2), "0.05");
        assert_eq!(decimal(12.349, 2), "12.35");
        assert_eq!(decimal(-0.5, 1), "-0.5");
        assert_eq!(decimal(7.0, 0), "7");
        assert_eq!(decimal(133.333_33, 2), "133.33");
    }

    #[test]
    fn numbers_and_durations_read_well() {
        assert_eq!(grouped(-1_234_567), "-1,234,567");
        assert_eq!(grouped(999), "999");
        let words = Lang::En.words();
        assert_eq!(words.duration(-3), "0 s");
        assert_eq!(words.duration(845), "14 min");
        assert_eq!(words.duration(7_500), "2 h 5 min");
        assert_eq!(words.duration(90_000), "1 d 1 h");
    }

    #[test]
    fn languages_are_found_by_their_primary_tag() {
        assert_eq!(Lang::from_tag(" zh-Hans-CN;q=0.9"), Some(Lang::Zh));
        assert_eq!(Lang::from_tag("en"), Some(Lang::En));
        assert_eq!(Lang::from_tag("fr"), None);
    }
}
