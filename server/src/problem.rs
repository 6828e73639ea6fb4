use std::fmt::Display;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use delayline_tokio::{Error, Invalid};
use serde::Serialize;
use serde_json::value::RawValue;

/// Why a request was not carried out, as problem details (RFC 9457). `code` never changes its meaning.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    job: Option<Box<RawValue>>,
    retry_after: Option<u32>,
}

#[derive(Serialize)]
struct Body<'a> {
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a RawValue>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Display) -> Problem {
        Problem { status, code, detail: detail.to_string(), job: None, retry_after: None }
    }

    pub(crate) fn bad(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub(crate) fn conflict(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(StatusCode::CONFLICT, code, detail)
    }

    pub(crate) fn not_found(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, code, detail)
    }

    pub(crate) fn too_large(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, code, detail)
    }

    pub(crate) fn later(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(1)
    }

    #[must_use]
    pub(crate) fn with_job(mut self, job: &impl Serialize) -> Problem {
        self.job = serde_json::value::to_raw_value(job).ok();
        self
    }

    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u32) -> Problem {
        self.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Body {
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            job: self.job.as_deref(),
        };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        match &error {
            Error::Name(_) => Problem::bad("bad_name", error),
            Error::Invalid(invalid) => Problem::bad(code(invalid), error),
            Error::Record(_) => Problem::bad("bad_job", error),
            Error::TooLarge { .. } => Problem::too_large("payload_too_large", error),
            Error::QueueFull { .. } => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", error).retry_after(10)
            }
            Error::Conflict { .. } => Problem::conflict("config_conflict", error),
            Error::NotSent { .. } => Problem::later("not_sent", error),
            Error::Unknown { .. } => Problem::later("unknown", error),
            Error::Busy => Problem::later("busy", error),
            Error::Closed => Problem::later("shutting_down", error),
            Error::Refused { .. } => Problem::later("refused", error),
            Error::Denied { .. } => Problem::new(StatusCode::BAD_GATEWAY, "denied", error),
            Error::Moved { .. } => Problem::new(StatusCode::BAD_GATEWAY, "moved", error),
            _ => Problem::new(StatusCode::BAD_GATEWAY, "broken", error),
        }
    }
}

fn code(invalid: &Invalid) -> &'static str {
    match invalid {
        Invalid::Delay { .. } => "delay_too_long",
        Invalid::Ttl { .. } => "ttl_too_short",
        Invalid::TtlTooLong(_) => "ttl_too_long",
        Invalid::Attempts { .. } => "bad_attempts",
        Invalid::Backoff { .. } => "bad_backoff",
        Invalid::TooLong { .. } => "too_long",
        _ => "bad_option",
    }
}
