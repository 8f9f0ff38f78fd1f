//! The W3C trace context inside: which span belongs to which trace, also where the caller's span is long gone.
//!
//! A record keeps the id of its first trace, and no span. So the span of each execution has an id that is made of what is known
//! to everybody: its trace, its record and its epoch. Whoever meets the record later, a replay, the scanner, the relay or another
//! instance, can point at that span without having asked for it.

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
};

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
};
use sha2::{Digest, Sha256};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use uuid::Uuid;

/// Whether spans go anywhere. Everything here is nothing otherwise.
static EXPORTING: AtomicBool = AtomicBool::new(false);
/// The epoch of a record's first execution.
const FIRST_EPOCH: i64 = 1;

thread_local! {
    /// The ids that the span which is just being begun on this thread is to have.
    static NEXT: Cell<Next> = const { Cell::new(Next { trace: None, span: None }) };
}

#[derive(Clone, Copy, Default)]
struct Next {
    trace: Option<TraceId>,
    span: Option<SpanId>,
}

/// Says that spans are exported from now on.
pub fn start_exporting() {
    EXPORTING.store(true, Ordering::Relaxed);
}

fn is_exporting() -> bool {
    EXPORTING.load(Ordering::Relaxed)
}

/// The trace id that the generator of ids has to give to the span that is just being begun, if it is not to choose one.
pub fn next_trace_id() -> Option<TraceId> {
    NEXT.get().trace
}

/// The same for its span id.
pub fn next_span_id() -> Option<SpanId> {
    NEXT.get().span
}

/// Begins the exported half of a span with ids of ours.
fn begin_with(span: &Span, next: Next) {
    NEXT.set(next);
    // Asking for its context begins it; nothing else runs on this thread between.
    drop(span.context());
    NEXT.set(Next::default());
}

/// Begins a request's span in its trace: below the caller's span when there is one, else as the trace's root.
pub fn begin_request(span: &Span, trace_id: &str, parent: Option<(&str, bool)>) {
    if !is_exporting() {
        return;
    }
    let Ok(trace) = TraceId::from_hex(trace_id) else {
        return;
    };
    let parent = parent.and_then(|(id, sampled)| Some((SpanId::from_hex(id).ok()?, sampled)));
    if let Some((id, sampled)) = parent {
        set_remote_parent(span, trace, id, sampled);
    }
    let next = Next {
        trace: Some(trace),
        span: None,
    };
    begin_with(span, next);
}

/// The span of one execution.
pub(crate) fn execution(trace_id: &str, record_id: i64, epoch: i64) -> Span {
    if !is_exporting() {
        return Span::none();
    }
    let span = tracing::info_span!("execute", trace_id, record_id, epoch);
    if !span.is_disabled() {
        let next = Next {
            trace: TraceId::from_hex(trace_id).ok(),
            span: Some(execution_id(trace_id, record_id, epoch)),
        };
        begin_with(&span, next);
    }
    span
}

/// A span below the first execution of a record, in the record's trace; it is made only when spans go anywhere.
pub(crate) fn continuing(trace_id: &str, record_id: i64, begin: impl FnOnce() -> Span) -> Span {
    let Some((trace, first)) = first_execution(trace_id, record_id) else {
        return Span::none();
    };
    let span = begin();
    set_remote_parent(&span, trace, first, true);
    span
}

/// A span below the current one; it is made only when spans go anywhere.
pub(crate) fn below(begin: impl FnOnce() -> Span) -> Span {
    if is_exporting() {
        begin()
    } else {
        Span::none()
    }
}

/// Links the current span to the first execution of a record.
pub(crate) fn link_first(trace_id: &str, record_id: i64) {
    if let Some((trace, first)) = first_execution(trace_id, record_id) {
        Span::current().add_link(remote(trace, first, true));
    }
}

/// The W3C `traceparent` for a request to the outside: of the current span, if that is in this trace.
pub fn traceparent(trace_id: &str) -> String {
    let current = is_exporting().then(|| Span::current().context().span().span_context().clone());
    match current {
        Some(at) if at.is_valid() && at.trace_id().to_string() == trace_id => {
            let flags = at.trace_flags() & TraceFlags::SAMPLED;
            format!("00-{trace_id}-{}-{:02x}", at.span_id(), flags.to_u8())
        }
        _ => format!(
            "00-{trace_id}-{}-01",
            &Uuid::new_v4().simple().to_string()[16..]
        ),
    }
}

fn first_execution(trace_id: &str, record_id: i64) -> Option<(TraceId, SpanId)> {
    let trace = is_exporting().then(|| TraceId::from_hex(trace_id).ok())??;
    Some((trace, execution_id(trace_id, record_id, FIRST_EPOCH)))
}

fn set_remote_parent(span: &Span, trace: TraceId, parent: SpanId, sampled: bool) {
    let parent = Context::new().with_remote_span_context(remote(trace, parent, sampled));
    // A span that has begun already stays where it is.
    let _ = span.set_parent(parent);
}

fn remote(trace: TraceId, span: SpanId, sampled: bool) -> SpanContext {
    let flags = if sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::NOT_SAMPLED
    };
    SpanContext::new(trace, span, flags, true, TraceState::default())
}

fn execution_id(trace_id: &str, record_id: i64, epoch: i64) -> SpanId {
    let mut hash = Sha256::new();
    hash.update(trace_id.as_bytes());
    hash.update(record_id.to_be_bytes());
    hash.update(epoch.to_be_bytes());
    let mut id = [0; 8];
    id.copy_from_slice(&hash.finalize()[..8]);
    // All zeros would be no id.
    id[7] |= 1;
    SpanId::from_bytes(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_of_an_execution_can_be_named_by_whoever_knows_the_record() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let id = execution_id(trace, 7, 1);
        assert_eq!(id, execution_id(trace, 7, 1));
        assert!(
            id != SpanId::INVALID
                && id != execution_id(trace, 7, 2)
                && id != execution_id(trace, 8, 1)
        );
    }

    #[test]
    fn a_traceparent_names_the_trace_also_without_an_exporter() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let parent = traceparent(trace);
        assert_eq!(parent.len(), 55);
        assert!(parent.starts_with(&format!("00-{trace}-")) && parent.ends_with("-01"));
    }
}
