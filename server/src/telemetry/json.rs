//! The log as JSON, one object a line. The library's own format leaves out what an error was caused by.

use std::{error::Error, fmt};

use serde_json::{Map, Value};
use tracing::{Event, Subscriber, field};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

/// The member that ties a line to its request.
const TRACE_ID: &str = "trace_id";

/// Writes `{"at","level","message","trace_id",…}`: the event's own fields, and the trace of the span that it happened in.
pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut at = String::new();
        SystemTime.format_time(&mut Writer::new(&mut at))?;
        let mut line = Map::new();
        line.insert("at".into(), at.into());
        line.insert("level".into(), event.metadata().level().as_str().into());
        line.insert("target".into(), event.metadata().target().into());
        event.record(&mut Members(&mut line));
        if !line.contains_key(TRACE_ID)
            && let Some(trace_id) = trace_of(context)
        {
            line.insert(TRACE_ID.into(), trace_id);
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// The trace of the innermost span that names one.
fn trace_of<S, N>(context: &FmtContext<'_, S, N>) -> Option<Value>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    context.event_scope()?.find_map(|span| {
        let extensions = span.extensions();
        let fields = extensions.get::<FormattedFields<N>>()?;
        let fields: Map<String, Value> = serde_json::from_str(fields.as_str()).ok()?;
        fields.get(TRACE_ID).cloned()
    })
}

/// Collects the fields of an event.
struct Members<'a>(&'a mut Map<String, Value>);

impl field::Visit for Members<'_> {
    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        self.0
            .insert(field.name().into(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &field::Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_bool(&mut self, field: &field::Field, value: bool) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_i64(&mut self, field: &field::Field, value: i64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_u64(&mut self, field: &field::Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_f64(&mut self, field: &field::Field, value: f64) {
        self.0.insert(field.name().into(), value.into());
    }

    /// The error and everything that caused it.
    fn record_error(&mut self, field: &field::Field, value: &(dyn Error + 'static)) {
        let mut chain = vec![Value::from(value.to_string())];
        let mut cause = value.source();
        while let Some(error) = cause {
            chain.push(error.to_string().into());
            cause = error.source();
        }
        self.0.insert(field.name().into(), chain.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::{fmt::format::JsonFields, layer::SubscriberExt};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("it failed")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn a_line_has_the_whole_chain_and_the_trace() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = written.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(move || Sink(sink.clone()))
            .fmt_fields(JsonFields::new())
            .event_format(JsonLine);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let _span = tracing::info_span!("request", trace_id = "abc").entered();
            let error = Outer("x".parse::<i32>().unwrap_err());
            tracing::warn!(n = 3, error = &error as &dyn Error, "words");
        });
        let written = written.lock().unwrap();
        let line: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "words");
        assert_eq!(line["n"], 3);
        assert_eq!(line["trace_id"], "abc");
        assert_eq!(
            line["error"],
            serde_json::json!(["it failed", "invalid digit found in string"])
        );
    }

    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
