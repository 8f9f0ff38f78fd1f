//! The W3C trace context of each request: continued when one came, else begun.

use axum::{extract::Request, middleware::Next, response::Response};
use engine::TraceId;
use http::{HeaderMap, HeaderName, HeaderValue};
use tracing::Instrument;
use uuid::Uuid;

/// Where the context comes in and goes out.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Middleware: leaves the [`TraceId`] in the request's extensions, works inside a span that names it, and answers with the
/// context.
pub async fn trace(mut request: Request, next: Next) -> Response {
    let trace_id =
        incoming(request.headers()).unwrap_or_else(|| Uuid::new_v4().simple().to_string());
    let span = tracing::info_span!("request", method = %request.method(), path = request.uri().path(), trace_id);
    request.extensions_mut().insert(TraceId(trace_id.clone()));
    let mut response = next.run(request).instrument(span).await;
    let parent_id = &Uuid::new_v4().simple().to_string()[..16];
    if let Ok(value) = HeaderValue::from_str(&format!("00-{trace_id}-{parent_id}-01")) {
        response.headers_mut().insert(TRACEPARENT, value);
    }
    response
}

/// The trace id of a valid `traceparent`: version, 32 and 16 lower-case hexadecimal digits that are not all zero, flags.
fn incoming(headers: &HeaderMap) -> Option<String> {
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
    (valid && whole && something(trace_id) && something(parent_id)).then(|| trace_id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_context_is_continued() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(TRACEPARENT, value.parse().unwrap());
            incoming(&headers)
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
