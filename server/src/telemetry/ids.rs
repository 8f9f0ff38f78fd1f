//! Ids of spans: chosen by the engine where others must be able to name the span, random everywhere else.

use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};

/// The generator of ids.
#[derive(Debug, Default)]
pub(super) struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        engine::trace::next_trace_id().unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        engine::trace::next_span_id().unwrap_or_else(|| self.0.new_span_id())
    }
}
