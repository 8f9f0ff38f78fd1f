//! The list of records as CSV (RFC 4180), streamed: a page at a time, so a million rows cost the memory of one page.

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use domain::{
    ProblemCode,
    view::{RecordFilter, RecordPage, RecordSummary},
};
use engine::{Engine, StoreError};
use futures::{StreamExt, TryStreamExt, stream};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};

use super::problem::ApiProblem;

/// How many rows are read at once.
const PAGE: u32 = 200;
const HEAD: [&str; 12] = [
    "id",
    "key",
    "action",
    "subject",
    "subject_name",
    "state",
    "version",
    "attempt",
    "created_at",
    "updated_at",
    "stuck_seconds",
    "error_code",
];

/// Every record that the filter lists, in the list's order. The first page is read before anything is answered, so that a store
/// that is away is a problem and not half a file.
///
/// # Errors
/// [`ProblemCode::InvalidQuery`] for a cursor that is none; and when the store fails.
pub async fn records(engine: Engine, filter: RecordFilter) -> Result<Response, ApiProblem> {
    let filter = RecordFilter {
        limit: Some(PAGE),
        ..filter
    };
    let first = engine.list_records(&filter).await?.ok_or_else(|| {
        ApiProblem::new(
            ProblemCode::InvalidQuery,
            "`after` is no cursor of this list.",
        )
    })?;
    let head = stream::once(async { Ok(line(HEAD.map(str::to_owned))) });
    let pages = stream::try_unfold(Some(Step::Read(first)), move |step| {
        let (engine, filter) = (engine.clone(), filter.clone());
        async move {
            let page = match step {
                None => return Ok(None),
                Some(Step::Read(page)) => page,
                Some(Step::Next(after)) => {
                    let filter = RecordFilter {
                        after: Some(after),
                        before: None,
                        ..filter
                    };
                    engine.list_records(&filter).await?.unwrap_or_default()
                }
            };
            Ok::<_, StoreError>(Some((rows(&page), page.next.map(Step::Next))))
        }
    });
    let body = head.chain(pages).inspect_err(|error: &StoreError| {
        // The connection is cut: a file that ends early must not look whole.
        tracing::error!(error = error as &dyn std::error::Error, "an export was cut");
    });
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"records.csv\""),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// How far an export has come.
enum Step {
    /// This page is read and not written yet.
    Read(RecordPage),
    /// The page after this cursor is to be read.
    Next(String),
}

fn rows(page: &RecordPage) -> Bytes {
    let lines = page.records.iter().map(|record| line(cells(record)));
    lines.flatten().collect()
}

fn cells(record: &RecordSummary) -> [String; 12] {
    [
        record.id.clone(),
        record.key.clone(),
        record.action.clone(),
        record.subject.clone(),
        record.subject_name.clone(),
        record.state.to_string(),
        record.version.to_string(),
        record.attempt.to_string(),
        record.created_at.clone(),
        record.updated_at.clone(),
        record
            .stuck_seconds
            .map_or_else(String::new, |s| s.to_string()),
        record.error_code.clone().unwrap_or_default(),
    ]
}

fn line(cells: [String; 12]) -> Bytes {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = writer.write_record(cells.map(harmless));
    writer.into_inner().unwrap_or_default().into()
}

/// A cell that no spreadsheet takes for a formula: keys and names are other people's text.
fn harmless(cell: String) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{cell}")
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_are_no_formulas() {
        let mut cells = HEAD.map(str::to_owned);
        cells[1] = "=HYPERLINK(\"x\")".to_owned();
        cells[4] = "a,\"b\"".to_owned();
        let text = String::from_utf8(line(cells).to_vec()).expect("UTF-8");
        assert!(
            text.starts_with("id,\"'=HYPERLINK(\"\"x\"\")\",action,"),
            "{text}"
        );
        assert!(text.contains(",\"a,\"\"b\"\"\","), "{text}");
        assert!(text.ends_with("error_code\r\n"), "{text}");
    }
}
