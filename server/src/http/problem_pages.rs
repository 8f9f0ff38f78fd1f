//! `/problems/{code}`: what a problem's `type` leads to.

use axum::{
    extract::Path,
    response::{Html, IntoResponse, Response},
};
use domain::ProblemCode;
use strum::VariantArray;

use super::problem::ApiProblem;

/// One kind of problem, explained.
pub async fn show(Path(code): Path<String>) -> Response {
    let Ok(code) = code.parse::<ProblemCode>() else {
        return ApiProblem::plain(ProblemCode::NotFound).into_response();
    };
    page(
        code.as_ref(),
        &format!(
            "<p><a href=\"/problems\">All problems</a></p><h1>{}</h1><p><code>{code}</code>, HTTP {}</p><p>{}</p>",
            escape(code.title()),
            code.status(),
            escape(code.advice())
        ),
    )
    .into_response()
}

/// All kinds.
pub async fn list() -> Response {
    let rows: String = ProblemCode::VARIANTS
        .iter()
        .map(|code| {
            format!(
                "<li><a href=\"/problems/{code}\"><code>{code}</code></a> ({}) {}</li>",
                code.status(),
                escape(code.title())
            )
        })
        .collect();
    page("problems", &format!("<h1>Problems</h1><ul>{rows}</ul>")).into_response()
}

fn page(title: &str, body: &str) -> Html<String> {
    Html(format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>{title} · Yici</title></head><body><main>{body}</main></body></html>"
    ))
}

/// Our own words hold back-quotes for code and nothing dangerous; escaped all the same.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
