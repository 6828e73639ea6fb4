use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use delayline_http::Problem;
use delayline_http::body::{JSON_BYTES, json_too_large, unexpected};
use futures_util::StreamExt;

use crate::rejection::Rejection;

/// Why a body was not read.
pub(crate) enum Unread {
    TooLarge,
    Broken(axum::Error),
}

impl Unread {
    /// The problem that it is, if one that is too large is `too_large`.
    pub(crate) fn problem(self, too_large: impl FnOnce() -> Problem) -> Problem {
        match self {
            Unread::TooLarge => too_large(),
            Unread::Broken(error) => Problem::bad("bad_body", format!("the body broke off: {error}")),
        }
    }
}

/// The whole body, if it has at most `limit` bytes.
pub(crate) async fn whole(body: Body, limit: usize) -> Result<Bytes, Unread> {
    let mut chunks = body.into_data_stream();
    let mut read = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(Unread::Broken)?;
        if read.len() + chunk.len() > limit {
            return Err(Unread::TooLarge);
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}

/// The absence of a body: one that is not read hides from us that its sender has gone, and what it says is ignored.
pub(crate) struct Empty;

impl<S: Send + Sync> FromRequest<S> for Empty {
    type Rejection = Rejection;

    async fn from_request(request: Request, _: &S) -> Result<Empty, Rejection> {
        whole(request.into_body(), 0).await.map_err(|unread| unread.problem(unexpected))?;
        Ok(Empty)
    }
}

/// A body of JSON.
pub(crate) async fn json(body: Body) -> Result<Bytes, Problem> {
    whole(body, JSON_BYTES).await.map_err(|unread| unread.problem(json_too_large))
}
