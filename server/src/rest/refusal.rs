use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use delayline_tokio::Span;
use serde_json::json;
use thiserror::Error;

use crate::body::Unread;

/// Why a request, or one command of a pipeline, was not carried out, in words that begin as Redis's errors do.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    #[error("WRONGPASS invalid or missing auth token")]
    Token,
    #[error("ERR this method is not allowed: use GET, HEAD, POST or PUT")]
    Method,
    #[error("ERR max request size exceeded. Limit: {limit} bytes, Actual: {bytes} bytes")]
    TooLarge { limit: usize, bytes: usize },
    #[error("ERR the body broke off: {0}")]
    Broken(axum::Error),
    #[error("ERR no byte of the body came for {0:?}: send it without pauses")]
    Slow(Duration),
    #[error("ERR bodies take all the memory that they may: try again, or send less at once")]
    NoRoom,
    #[error("ERR the body cannot be read as {expected}: {why}")]
    Json { expected: &'static str, why: serde_json::Error },
    #[error("ERR empty command")]
    Empty,
    #[error("ERR empty pipeline: give one command at least")]
    NoCommands,
    #[error(
        "ERR Command is not available: '{0}'. Over REST nothing may block, change the connection or stop Redis"
    )]
    Unavailable(String),
    #[error(
        "ERR Command is not available: '{0}'. It is none for data: `delayline rest --allow-admin` lets it pass"
    )]
    Admin(String),
    #[error("ERR Upstash-Response-Format {0} is not served here: leave it out, or ask for json")]
    Format(String),
    #[error("{0}")]
    Discarded(String),
    #[error("ERR {address} cannot be reached: {why}. Nothing was executed: ask again")]
    Unreachable { address: String, why: String },
    #[error("ERR the connection to {address} broke: {why}. It is not known whether this was executed")]
    Lost { address: String, why: String },
    #[error("ERR {address} did not answer within {limit}. It is not known whether this was executed")]
    Late { address: String, limit: Span },
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Refusal::Token => StatusCode::UNAUTHORIZED,
            Refusal::Method => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Refusal::NoRoom | Refusal::Unreachable { .. } | Refusal::Lost { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Refusal::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl From<Unread> for Refusal {
    fn from(unread: Unread) -> Refusal {
        match unread {
            Unread::TooSlow(patience) => Refusal::Slow(patience),
            Unread::NoRoom | Unread::TooLarge => Refusal::NoRoom,
            Unread::Broken(error) => Refusal::Broken(error),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        super::json(self.status(), &json!({ "error": self.to_string() }))
    }
}
