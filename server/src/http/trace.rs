//! The W3C trace context of each request: continued when one came, else begun.

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use engine::TraceId;
use http::{HeaderMap, HeaderName, HeaderValue};
use tracing::{Instrument, field};
use uuid::Uuid;

/// Where the context comes in and goes out.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Middleware: leaves the [`TraceId`] in the request's extensions, works inside a span that names it, and answers with the
/// context.
pub async fn trace(mut request: Request, next: Next) -> Response {
    let parent = incoming(request.headers());
    let trace_id = match &parent {
        Some(parent) => parent.trace_id.clone(),
        None => Uuid::new_v4().simple().to_string(),
    };
    // The route and not the path: a path may hold a key.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("page", MatchedPath::as_str);
    let span = tracing::info_span!(
        "request",
        otel.name = format!("{} {route}", request.method()),
        otel.kind = "server",
        otel.status_code = field::Empty,
        method = %request.method(),
        route,
        trace_id,
        status = field::Empty,
        action = field::Empty,
        key_hash = field::Empty,
        outcome = field::Empty,
        defence = field::Empty,
    );
    let above = parent.map(|parent| (parent.span_id, parent.sampled));
    let above = above.as_ref().map(|(id, sampled)| (id.as_str(), *sampled));
    engine::trace::begin_request(&span, &trace_id, above);
    request.extensions_mut().insert(TraceId(trace_id.clone()));
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    span.record("status", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    let here = span.in_scope(|| engine::trace::traceparent(&trace_id));
    if let Ok(value) = HeaderValue::from_str(&here) {
        response.headers_mut().insert(TRACEPARENT, value);
    }
    response
}

/// The caller's span.
struct Parent {
    trace_id: String,
    span_id: String,
    sampled: bool,
}

/// A valid `traceparent`: version, 32 and 16 lower-case hexadecimal digits that are not all zero, flags.
fn incoming(headers: &HeaderMap) -> Option<Parent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let mut parts = value.split('-');
    let (version, trace_id, parent_id, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |text: &str, len: usize| {
        text.len() == len && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let something = |text: &str| text.bytes().any(|b| b != b'0');
    let whole = version != "00" || parts.next().is_none();
    let valid = hex(version, 2)
        && version != "ff"
        && hex(trace_id, 32)
        && hex(parent_id, 16)
        && hex(flags, 2);
    // The lowest bit: the caller keeps this trace.
    let sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
    (valid && whole && something(trace_id) && something(parent_id)).then(|| Parent {
        trace_id: trace_id.to_owned(),
        span_id: parent_id.to_owned(),
        sampled,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_context_is_continued() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(TRACEPARENT, value.parse().unwrap());
            incoming(&headers).map(|parent| parent.trace_id)
        };
        let id = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(
            of(&format!("00-{id}-b7ad6b7169203331-01")).as_deref(),
            Some(id)
        );
        assert_eq!(
            of(&format!("01-{id}-b7ad6b7169203331-01-more")).as_deref(),
            Some(id)
        );
        for bad in [
            "",
            "00",
            &format!("ff-{id}-b7ad6b7169203331-01"),
            &format!("00-{id}-b7ad6b7169203331-01-more"),
            &format!("00-{}-b7ad6b7169203331-01", id.to_uppercase()),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            &format!("00-{id}-0000000000000000-01"),
            &format!("00-{id}-b7ad6b7169203331"),
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
