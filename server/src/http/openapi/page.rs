//! The document for people: one static page without a script.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:14px/20px system-ui,\"Noto Sans SC\",sans-serif;margin:0 auto;max-width:960px;padding:24px;\
color:light-dark(#1b1f24,#e6e8eb);background:light-dark(#fff,#14171a)}\
h1{font-size:32px;line-height:40px}h2{font-size:20px;line-height:28px;margin-top:40px}\
section{border-top:1px solid light-dark(#d5d9de,#333a42);padding:12px 0}\
h3{font-size:14px;margin:0;font-family:ui-monospace,monospace}\
code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%;margin:8px 0}\
th,td{text-align:left;vertical-align:top;padding:4px 12px 4px 0;border-bottom:1px solid light-dark(#e8ebee,#262c33)}\
th{font-weight:600}a{color:light-dark(#0b57d0,#8ab4f8)}";

/// The policy that permits this page its own style and nothing else.
pub(super) fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; frame-ancestors 'none'"
    )
}

pub(super) fn render(document: &Value) -> String {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>API · Yici</title><style>{STYLE}</style></head><body><main>\
         <h1>API</h1><p>{}</p><p><a href=\"/api/openapi.json\">openapi.json</a> · <a href=\"/problems\">Problems</a></p>",
        text(&document["info"]["description"])
    );
    for tag in elements(&document["tags"]) {
        page += &format!("<h2>{}</h2>", text(&tag["description"]));
        for (path, item) in members(&document["paths"]) {
            for (method, operation) in members(item) {
                if operation["tags"][0] == tag["name"] {
                    page += &section(path, method, operation);
                }
            }
        }
    }
    page += "<h2>Forms</h2>";
    for (name, schema) in members(&document["components"]["schemas"]) {
        page += &form(name, schema);
    }
    page += "</main></body></html>";
    page
}

fn section(path: &str, method: &str, operation: &Value) -> String {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let mut section = format!(
        "<section id=\"{}\"><h3>{} {}</h3><p>{}. {}</p>",
        text(&operation["operationId"]),
        method.to_ascii_uppercase(),
        escape(path),
        text(&operation["summary"]),
        text(&operation["description"])
    );
    let parameters: Vec<_> = elements(&operation["parameters"]).collect();
    if !parameters.is_empty() {
        section +=
            "<table><thead><tr><th>Parameter</th><th>In</th><th>Meaning</th></tr></thead><tbody>";
        for parameter in parameters {
            section += &format!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                text(&parameter["name"]),
                text(&parameter["in"]),
                text(&parameter["description"])
            );
        }
        section += "</tbody></table>";
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if body.is_object() {
        section += &format!("<p>Body: {}</p>", kind(body));
    }
    section += "<table><thead><tr><th>Status</th><th>Meaning</th><th>Body</th></tr></thead><tbody>";
    for (status, answer) in members(&operation["responses"]) {
        let holds = members(&answer["content"])
            .next()
            .map_or(String::new(), |(media, content)| {
                let schema = &content["schema"];
                if schema.is_object() {
                    kind(schema)
                } else {
                    format!("<code>{}</code>", escape(media))
                }
            });
        section += &format!(
            "<tr><td>{}</td><td>{}</td><td>{holds}</td></tr>",
            escape(status),
            text(&answer["description"])
        );
    }
    section + "</tbody></table></section>"
}

fn form(name: &str, schema: &Value) -> String {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let mut form = format!(
        "<section id=\"form-{0}\"><h3>{0}</h3><p>{1}</p>",
        escape(name),
        text(&schema["description"])
    );
    let properties: Vec<_> = members(&schema["properties"]).collect();
    if !properties.is_empty() {
        form +=
            "<table><thead><tr><th>Member</th><th>Form</th><th>Meaning</th></tr></thead><tbody>";
        for (member, schema) in properties {
            form += &format!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                escape(member),
                kind(schema),
                text(&schema["description"])
            );
        }
        form += "</tbody></table>";
    } else if schema["enum"].is_array() {
        form += &format!("<p>{}</p>", kind(schema));
    }
    form + "</section>"
}

/// What a schema is, in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return format!("<a href=\"#form-{0}\">{0}</a>", escape(name));
    }
    for choice in ["oneOf", "anyOf"] {
        let kinds: Vec<_> = elements(&schema[choice]).map(kind).collect();
        if !kinds.is_empty() {
            return kinds.join(" or ");
        }
    }
    let words: Vec<_> = elements(&schema["enum"])
        .filter_map(Value::as_str)
        .map(|word| format!("<code>{}</code>", escape(word)))
        .collect();
    if !words.is_empty() {
        return words.join(", ");
    }
    if schema["items"].is_object() {
        return format!("list of {}", kind(&schema["items"]));
    }
    match &schema["type"] {
        Value::String(name) => escape(name),
        Value::Array(names) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).map(escape).collect();
            names.join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
