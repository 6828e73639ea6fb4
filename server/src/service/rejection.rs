use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use delayline_http::Problem;
use delayline_tokio::Error;

use crate::service::access::Refused;

/// A problem, as axum's handlers and extractors answer it.
#[derive(Debug)]
pub(crate) struct Rejection(pub(crate) Problem);

impl From<Problem> for Rejection {
    fn from(problem: Problem) -> Rejection {
        Rejection(problem)
    }
}

impl From<Error> for Rejection {
    fn from(error: Error) -> Rejection {
        Rejection(problem(error))
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let refused = Refused { code: self.0.code, detail: self.0.detail.clone() };
        let mut response = respond(self.0.into());
        response.extensions_mut().insert(refused);
        response
    }
}

/// What the API says of an error.
pub(crate) fn problem(error: Error) -> Problem {
    match error {
        Error::Name(error) => error.into(),
        Error::Invalid(invalid) => invalid.into(),
        Error::Record(error) => error.into(),
        Error::TooLarge { .. } => Problem::too_large("payload_too_large", error),
        Error::QueueFull { .. } => Problem::queue_full(error),
        Error::Conflict { .. } => Problem::conflict("config_conflict", error),
        Error::NotSent { .. } => Problem::not_sent(error),
        Error::Unknown { .. } => Problem::unknown(error),
        Error::Busy => Problem::busy(error),
        Error::Closed | Error::EnginePanicked => Problem::shutting_down(error),
        Error::Refused { .. } => Problem::later("refused", error),
        Error::Denied { .. } => Problem::behind("denied", error),
        Error::ShardsMismatch { .. } | Error::NewerLayout { .. } | Error::OlderLayout { .. } => {
            Problem::wrong_shards(error)
        }
        Error::Gated { .. } => Problem::gated(error),
        Error::OtherSlot { .. } => Problem::forward_other_slot(error),
        _ => Problem::broken(error),
    }
}

/// An answer as axum sends it.
pub(crate) fn respond(answer: delayline_http::Response) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}
