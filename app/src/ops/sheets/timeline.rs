//! What happened to a record, on one time axis, the newest last, with the gaps between.

use domain::view::{ArrivalView, CompensationEvent, RecordDetail};
use leptos::prelude::*;

use super::{
    names::{action_word, defence_word, finding_word, outcome_word},
    parts::{milliseconds, odd, when},
};
use crate::text::{fill, sheet_words, words};

/// Gaps from this many seconds on are named.
const GAP_SECONDS: i64 = 10;

/// One thing that happened.
struct Moment {
    at: String,
    /// Gives the mark its shape and colour.
    class: &'static str,
    what: String,
    more: Option<AnyView>,
}

/// The timeline of a record.
pub(super) fn timeline(record: &RecordDetail) -> impl IntoView + use<> {
    let mut moments = moments(record);
    moments.sort_by_key(|moment| micros(&moment.at));
    let words = words();
    let mut before: Option<i64> = None;
    let items = moments.into_iter().map(|moment| {
        let at = micros(&moment.at);
        let gap = before.map_or(0, |before| (at - before) / 1_000_000);
        before = Some(at);
        let gap = (gap >= GAP_SECONDS)
            .then(|| view! { <li class="gap" aria-hidden="true">{words.duration(gap)}</li> });
        view! {
            {gap}
            <li class=format!("moment moment-{}", moment.class)>
                <div class="moment-head"><strong>{moment.what}</strong> {when(&moment.at, "second")}</div>
                {moment.more}
            </li>
        }
    });
    view! { <ol class="timeline">{items.collect_view()}</ol> }
}

fn moments(record: &RecordDetail) -> Vec<Moment> {
    let own = sheet_words();
    let plain = |at: &str, class, what: String| Moment {
        at: at.to_owned(),
        class,
        what,
        more: None,
    };
    let mut all = Vec::new();
    for claim in &record.claims {
        let what = fill(
            own.claimed,
            &[
                ("n", &claim.attempt.to_string()),
                ("who", &claim.instance),
                ("epoch", &claim.epoch.to_string()),
            ],
        );
        all.push(plain(&claim.claimed_at, "claim", what));
        if let Some(ended) = &claim.ended_at {
            let what = fill(own.claim_ended, &[("n", &claim.attempt.to_string())]);
            all.push(plain(ended, "claim", what));
        }
    }
    if let Some(lease) = &record.lease_until {
        let what = if record.lease_is_live {
            own.lease_runs_out
        } else {
            own.lease_ran_out
        };
        all.push(plain(lease, "lease", what.to_owned()));
    }
    all.extend(record.arrivals.iter().map(arrival));
    if let Some(at) = &record.scanned_at {
        let what = fill(own.scanned, &[("n", &record.scan_attempts.to_string())]);
        let note = record.scan_note.clone();
        all.push(Moment {
            more: note.map(|note| view! { <p>{note}</p> }.into_any()),
            ..plain(at, "scan", what)
        });
    }
    all.extend(record.compensations.iter().map(compensation));
    for message in &record.outbox {
        let named = |text: &str| fill(text, &[("topic", &message.topic)]);
        all.push(Moment {
            more: Some(
                view! { <p><code>{odd(&message.payload.to_string())}</code></p> }.into_any(),
            ),
            ..plain(&message.created_at, "message", named(own.message_written))
        });
        if let Some(at) = &message.delivered_at {
            all.push(plain(at, "message", named(own.message_delivered)));
        }
        if let Some(at) = &message.dead_at {
            let error = message.last_error.clone();
            all.push(Moment {
                more: error.map(|error| view! { <p>{odd(&error)}</p> }.into_any()),
                ..plain(at, "refused", named(own.message_dead))
            });
        }
    }
    if record.state.is_terminal() {
        let what = fill(own.ended, &[("state", words().state(record.state))]);
        all.push(plain(&record.updated_at, "end", what));
    }
    all
}

fn arrival(arrival: &ArrivalView) -> Moment {
    let own = sheet_words();
    let what = match arrival.outcome {
        Some(outcome) => fill(own.arrived, &[("outcome", outcome_word(outcome))]),
        None => own.arrived_open.to_owned(),
    };
    let same = if arrival.same_content {
        own.same_content
    } else {
        own.other_content
    };
    let class = if arrival.same_content {
        "arrival"
    } else {
        "refused"
    };
    let trace = format!("/records?q={}", arrival.trace_id);
    let more = view! {
        <p>
            {arrival.defence.map(|d| format!("{} {} · ", own.answered_by, defence_word(d)))} {same}
            {arrival.duration_ms.map(|ms| format!(" · {}", milliseconds(ms)))}
        </p>
        <p class="quiet">
            {own.column_client} " " {odd(&arrival.client_id)} " · "
            {own.column_trace} " " <a class="quiet-link" href=trace><code class="trace">{arrival.trace_id.clone()}</code></a>
        </p>
    };
    Moment {
        at: arrival.arrived_at.clone(),
        class,
        what,
        more: Some(more.into_any()),
    }
}

/// What somebody did, in words.
pub(super) fn event_text(event: &CompensationEvent, who: &str) -> String {
    let own = sheet_words();
    let action = match (event.event.as_str(), &event.evidence) {
        // Whoever looked is told what the evidence proposes.
        ("proposed", Some(evidence)) => evidence.proposed.map_or(own.person_chooses, action_word),
        _ => action_word(event.action),
    };
    let values = [("action", action), ("who", who)];
    fill(event_word(&event.event), &values)
}

fn compensation(event: &CompensationEvent) -> Moment {
    let own = sheet_words();
    let who = event.actor_name.as_deref().unwrap_or(own.by_scanner);
    let what = event_text(event, who);
    let found = event
        .evidence
        .as_ref()
        .map(|e| view! { <p class="quiet">{finding_word(e.finding)}</p> });
    let more = view! { <p>{odd(&event.reason)}</p> {found} };
    Moment {
        at: event.at.clone(),
        class: if matches!(event.event.as_str(), "refused" | "rejected" | "expired") {
            "refused"
        } else {
            "act"
        },
        what,
        more: Some(more.into_any()),
    }
}

/// The sentence for an event of the log.
fn event_word(event: &str) -> &'static str {
    let own = sheet_words();
    match event {
        "proposed" => own.event_proposed,
        "requested" => own.event_requested,
        "approved" => own.event_approved,
        "rejected" => own.event_rejected,
        "expired" => own.event_expired,
        "applied" => own.event_applied,
        _ => own.event_refused,
    }
}

/// The microseconds of an RFC 3339 time in UTC since 1970; 0 for any other text.
fn micros(at: &str) -> i64 {
    parse(at).unwrap_or(0)
}

fn parse(at: &str) -> Option<i64> {
    let number = |from: usize, to: usize| at.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    // Days since 1970 in the Gregorian calendar, counted from March so that the leap day is a year's last.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
    let digits: String = at
        .get(19..)?
        .trim_start_matches('.')
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let fraction = format!("{digits:0<6}").get(..6)?.parse::<i64>().ok()?;
    Some(seconds * 1_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn times_are_ordered_whatever_their_fraction() {
        assert_eq!(micros("1970-01-01T00:00:00Z"), 0);
        assert_eq!(micros("2026-11-30T10:02:11.5Z"), 1_796_032_931_500_000);
        assert!(micros("2026-11-30T10:02:11Z") < micros("2026-11-30T10:02:11.000001Z"));
        assert!(micros("2024-02-29T23:59:59Z") < micros("2024-03-01T00:00:00Z"));
        assert_eq!(micros("soon"), 0);
    }
}
