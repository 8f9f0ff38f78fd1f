//! Time in the browser: a tick for everything that shows an age, and the words of the browser's own `Intl`.
//!
//! Before hydration nothing is known of the reader's clock and zone, so times are shown as they are stored.

use js_sys::{Array, Date, Function, Intl, Object, Reflect};
use leptos::prelude::*;
use std::time::Duration;
use wasm_bindgen::{JsCast, JsValue};

use crate::text::Lang;

/// How often ages are brought up to date; a second is the smallest unit that is shown.
const TICK: Duration = Duration::from_secs(1);

/// The reader's clock in milliseconds; `None` before hydration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(RwSignal<Option<f64>>);

impl Clock {
    /// Starts the clock of a page; it ticks once effects run, which is after hydration and in the browser only.
    pub(crate) fn start() -> Self {
        let now = RwSignal::new(None);
        Effect::new(move || {
            now.set(Some(Date::now()));
            if let Ok(handle) = set_interval_with_handle(move || now.set(Some(Date::now())), TICK) {
                on_cleanup(move || handle.clear());
            }
        });
        Self(now)
    }

    /// The time now.
    pub(crate) fn now(self) -> Option<f64> {
        self.0.get()
    }
}

/// The clock of this page.
pub(crate) fn clock() -> Clock {
    use_context().unwrap_or_else(|| Clock(RwSignal::new(None)))
}

/// The milliseconds of an RFC 3339 time; NaN when it is none.
pub(crate) fn millis(at: &str) -> f64 {
    Date::parse(at)
}

/// A stored time without fractions of a second, for the page before hydration.
pub(crate) fn plain(at: &str) -> String {
    let (head, zone) = match at.find(['Z', '+']) {
        Some(i) => at.split_at(i),
        None => (at, ""),
    };
    format!("{}{zone}", head.split('.').next().unwrap_or(head))
}

/// "3 minutes ago", in the page's language.
pub(crate) fn relative(lang: Lang, at: &str, now: f64) -> String {
    let seconds = (millis(at) - now) / 1_000.0;
    let (n, unit) = match seconds.abs() {
        s if s < 60.0 => (seconds, "second"),
        s if s < 3_600.0 => (seconds / 60.0, "minute"),
        s if s < 86_400.0 => (seconds / 3_600.0, "hour"),
        _ => (seconds / 86_400.0, "day"),
    };
    let options = object(&[("numeric", "auto")]);
    Intl::RelativeTimeFormat::new(&locales(lang), &options)
        .format(n.trunc(), unit)
        .into()
}

/// The exact local time with its zone.
fn exact(lang: Lang, at: &str) -> String {
    format(
        lang,
        at,
        &[
            ("dateStyle", "long"),
            ("timeStyle", "long"),
            ("hourCycle", "h23"),
        ],
    )
}

/// The exact local time with its zone, and the same moment in UTC.
pub(crate) fn with_utc(lang: Lang, at: &str) -> String {
    format!("{} · {}", exact(lang, at), plain(at))
}

/// The local day and minute.
pub(crate) fn short(lang: Lang, at: &str) -> String {
    format(
        lang,
        at,
        &[
            ("month", "short"),
            ("day", "numeric"),
            ("hour", "2-digit"),
            ("minute", "2-digit"),
            ("hourCycle", "h23"),
        ],
    )
}

/// The local day and second.
pub(crate) fn second(lang: Lang, at: &str) -> String {
    format(
        lang,
        at,
        &[
            ("month", "short"),
            ("day", "numeric"),
            ("hour", "2-digit"),
            ("minute", "2-digit"),
            ("second", "2-digit"),
            ("hourCycle", "h23"),
        ],
    )
}

/// Whether a time is of the day that it is now, where the reader is.
pub(crate) fn is_same_day(at: &str, now: f64) -> bool {
    let (at, now) = (Date::new(&JsValue::from_str(at)), Date::new(&now.into()));
    at.get_full_year() == now.get_full_year()
        && at.get_month() == now.get_month()
        && at.get_date() == now.get_date()
}

/// The name of the reader's time zone.
pub(crate) fn zone() -> Option<String> {
    let options = Intl::DateTimeFormat::default().resolved_options();
    Reflect::get(&options, &"timeZone".into()).ok()?.as_string()
}

/// The moment that a date and time without a zone means where the reader is, as RFC 3339 in UTC; `None` when it is none.
pub(crate) fn moment(local: &str) -> Option<String> {
    let date = Date::new(&JsValue::from_str(local));
    (!date.get_time().is_nan()).then(|| date.to_iso_string().into())
}

/// The local hour and minute.
pub(crate) fn hour_minute(lang: Lang, at: &str) -> String {
    format(
        lang,
        at,
        &[
            ("hour", "2-digit"),
            ("minute", "2-digit"),
            ("hourCycle", "h23"),
        ],
    )
}

fn format(lang: Lang, at: &str, options: &[(&str, &str)]) -> String {
    let date = Date::new(&JsValue::from_str(at));
    if date.get_time().is_nan() {
        return at.to_owned();
    }
    let format: Function = Intl::DateTimeFormat::new(&locales(lang), &object(options)).format();
    format
        .call1(&JsValue::UNDEFINED, &date)
        .ok()
        .and_then(|text| text.as_string())
        .unwrap_or_else(|| at.to_owned())
}

fn locales(lang: Lang) -> Array {
    Array::of1(&JsValue::from_str(lang.tag()))
}

fn object(members: &[(&str, &str)]) -> Object {
    let object = Object::new();
    for (name, value) in members {
        // Setting a member of a fresh plain object cannot fail.
        let _ = Reflect::set(object.unchecked_ref(), &(*name).into(), &(*value).into());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn plain_times_have_no_fraction() {
        assert_eq!(plain("2026-11-30T10:02:11.123456Z"), "2026-11-30T10:02:11Z");
        assert_eq!(
            plain("2026-11-30T10:02:11+00:00"),
            "2026-11-30T10:02:11+00:00"
        );
    }
}
