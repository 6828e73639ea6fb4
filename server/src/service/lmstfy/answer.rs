use std::fmt::Display;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use delayline_http::Problem;
use delayline_http::body::json_too_large;
use delayline_tokio::Error;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use crate::service::access::Refused;
use crate::service::body::Unread;
use crate::service::registry::RegistryError;
use crate::service::rejection::problem;

pub(super) const JSON: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const INTERNAL: &str = "internal error";

/// An answer that says that something was not done.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    key: &'static str,
    text: String,
    /// What the log says of it beside.
    logged: Option<Refused>,
}

impl Refusal {
    /// `{"error":"…"}` of this status.
    pub(super) fn error(status: StatusCode, text: impl Into<String>) -> Refusal {
        Refusal { status, key: "error", text: text.into(), logged: None }
    }

    /// `{"error":"…"}` of status 400.
    pub(super) fn bad(text: impl Into<String>) -> Refusal {
        Refusal::error(StatusCode::BAD_REQUEST, text)
    }

    /// `{"msg":"…"}` of this status.
    pub(super) fn message(status: StatusCode, text: impl Into<String>) -> Refusal {
        Refusal { status, key: "msg", text: text.into(), logged: None }
    }

    /// What clients are told of whatever is no fault of theirs, and the log more exactly.
    pub(super) fn internal(code: &'static str, detail: impl Display) -> Refusal {
        let logged = Some(Refused { code, detail: detail.to_string() });
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Refusal { status, key: "error", text: INTERNAL.to_owned(), logged }
    }

    /// What is said of a body that was not read, where one that is too large is `too_large`.
    pub(super) fn unread(unread: Unread, too_large: &'static str) -> Refusal {
        match unread {
            Unread::TooLarge => Refusal::error(StatusCode::PAYLOAD_TOO_LARGE, too_large),
            Unread::TooSlow(_) | Unread::Broken(_) => Refusal::bad("failed to read body"),
            unread @ Unread::NoRoom => {
                let Problem { code, detail, .. } = unread.problem(json_too_large);
                Refusal::internal(code, detail)
            }
        }
    }
}

impl From<Error> for Refusal {
    /// lmstfy's clients repeat a publish that was answered 500, and nothing else.
    fn from(error: Error) -> Refusal {
        let is_full = matches!(error, Error::QueueFull { .. });
        let Problem { code, detail, .. } = problem(error);
        let refusal = Refusal::internal(code, &detail);
        if is_full { Refusal { text: detail, ..refusal } } else { refusal }
    }
}

impl From<RegistryError> for Refusal {
    fn from(error: RegistryError) -> Refusal {
        Problem::from(error).into()
    }
}

impl From<Problem> for Refusal {
    /// What no repetition mends is told as it is.
    fn from(problem: Problem) -> Refusal {
        let Problem { status, code, detail, .. } = problem;
        match StatusCode::from_u16(status) {
            Ok(status) if status.is_client_error() => Refusal::error(status, detail),
            _ => Refusal::internal(code, detail),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Refusal { status, key, text, logged } = self;
        let mut response = json(status, &serde_json::json!({ key: text }));
        if let Some(logged) = logged {
            response.extensions_mut().insert(logged);
        }
        response
    }
}

/// An answer of compact JSON, without an end of line.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], compact(value)).into_response()
}

/// An answer of JSON that is indented by four spaces, without an end of line.
pub(super) fn indented_json(status: StatusCode, value: &impl Serialize) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], indented(value)).into_response()
}

/// A plain text.
pub(super) fn text(status: StatusCode, text: impl Into<String>) -> Response {
    (status, [(header::CONTENT_TYPE, TEXT)], text.into()).into_response()
}

/// JSON as Go writes it.
pub(super) fn compact(value: &impl Serialize) -> String {
    escaped(serde_json::to_string(value).unwrap_or_default())
}

/// JSON as Go writes it when it is to be read by people.
pub(super) fn indented(value: &impl Serialize) -> String {
    let mut written = Vec::new();
    let mut serializer =
        serde_json::Serializer::with_formatter(&mut written, PrettyFormatter::with_indent(b"    "));
    let _ = value.serialize(&mut serializer);
    escaped(String::from_utf8(written).unwrap_or_default())
}

/// Go escapes what HTML would read otherwise; outside of strings JSON has none of it.
fn escaped(json: String) -> String {
    const ESCAPED: [(char, &str); 5] = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    ESCAPED.iter().fold(json, |json, (from, to)| json.replace(*from, to))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_written_as_go_writes_it() {
        assert_eq!(compact(&json!({ "a": "<b>&\u{2028}é\"" })), r#"{"a":"\u003cb\u003e\u0026\u2028é\""}"#);
        assert_eq!(
            indented(&json!({ "a": { "b": [1] } })),
            "{\n    \"a\": {\n        \"b\": [\n            1\n        ]\n    }\n}"
        );
        assert_eq!(indented(&json!({ "tokens": {} })), "{\n    \"tokens\": {}\n}");
    }
}
