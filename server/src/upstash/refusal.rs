use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use delayline_tokio::Span;
use serde_json::json;
use thiserror::Error;

use crate::service::pace::TooSlow;
use crate::service::rate::Exceeded;

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
    #[error("ERR {0}")]
    Slow(TooSlow),
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
    #[error(
        "ERR Command is not available: 'SUBSCRIBE' and 'PSUBSCRIBE' in this form. Ask for /subscribe/CHANNEL or \
         /psubscribe/PATTERN by GET or POST, with the header Accept: text/event-stream"
    )]
    NoEventStream,
    #[error("ERR wrong number of arguments: name a channel in the path, as in /subscribe/chat")]
    NoTopic,
    #[error(
        "ERR more than {most} channels or patterns in one request: subscribe to the others by another one"
    )]
    TooManyTopics { most: usize },
    #[error("ERR there are {most} subscriptions, and may be no more: end some, or raise --max-subscriptions")]
    TooManySubscriptions { most: usize },
    #[error(
        "ERR this address has {most} subscriptions, and may have no more: end some, or raise \
         --max-subscriptions-per-client"
    )]
    TooManyOfClient { most: usize },
    #[error(
        "ERR more commands came than --max-command-rate lets through. Nothing was executed: ask again later"
    )]
    TooFast(#[from] Exceeded),
    #[error(
        "ERR all connections are in use by requests that wait for an answer. Nothing was executed: try again, or raise \
         --max-connections"
    )]
    TooManyConnections,
    #[error("ERR Upstash-Response-Format {0} is not served here: leave it out, or ask for json or resp2")]
    Format(String),
    #[error("ERR Upstash-Encoding goes with no Upstash-Response-Format but json: leave one of them out")]
    EncodedResp2,
    #[error("ERR max response size exceeded. Limit: {limit} bytes. It was executed: ask for less at once")]
    AnswerTooLarge { limit: usize },
    #[error(
        "ERR answers that are not read take all the memory that they may. It was executed: ask for less at once"
    )]
    NoRoomForAnswer,
    #[error("ERR the endpoint stops: ask again")]
    Closing,
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
    /// 400, 401, 405 and 429 say that nothing was executed, to whoever reads no more than that; for the others the text says
    /// whether that is known.
    fn status(&self) -> StatusCode {
        match self {
            Refusal::Token => StatusCode::UNAUTHORIZED,
            Refusal::Method => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Refusal::TooFast(_) | Refusal::TooManyOfClient { .. } => StatusCode::TOO_MANY_REQUESTS,
            Refusal::NoRoom
            | Refusal::NoRoomForAnswer
            | Refusal::TooManySubscriptions { .. }
            | Refusal::TooManyConnections
            | Refusal::Closing
            | Refusal::Unreachable { .. }
            | Refusal::Lost { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::AnswerTooLarge { .. } => StatusCode::BAD_GATEWAY,
            Refusal::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// After how many seconds to ask again, where that may help.
    fn retry_after(&self) -> Option<u32> {
        match self {
            Refusal::TooFast(exceeded) => Some(exceeded.retry_after_s()),
            Refusal::NoRoom
            | Refusal::TooManyOfClient { .. }
            | Refusal::TooManySubscriptions { .. }
            | Refusal::TooManyConnections
            | Refusal::Closing
            | Refusal::Unreachable { .. } => Some(1),
            _ => None,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = super::json(self.status(), &json!({ "error": self.to_string() }));
        if let Some(seconds) = self.retry_after() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
