use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use crate::problem::Problem;

/// The largest JSON body that is read as a whole.
pub(crate) const JSON_BYTES: usize = 16 << 20;
/// The most items of a JSON array.
pub(crate) const JSON_ITEMS: usize = 1_000;

/// Why a body was not read.
pub(crate) enum Unread {
    TooLarge,
    Broken(axum::Error),
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
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Empty, Problem> {
        whole(request.into_body(), 0).await.map(|_| Empty).map_err(|unread| match unread {
            Unread::TooLarge => {
                Problem::bad("unexpected_body", "no body is read here: pass options in the query")
            }
            Unread::Broken(error) => broken(&error),
        })
    }
}

/// A body of JSON.
pub(crate) async fn json(body: Body) -> Result<Bytes, Problem> {
    whole(body, JSON_BYTES).await.map_err(|unread| match unread {
        Unread::TooLarge => Problem::too_large(
            "body_too_large",
            "the body is over 16 MiB: send fewer items at once, or a batch as NDJSON, which has no limit",
        ),
        Unread::Broken(error) => broken(&error),
    })
}

pub(crate) fn broken(error: &axum::Error) -> Problem {
    Problem::bad("bad_body", format!("the body broke off: {error}"))
}

pub(crate) fn too_many_items(items: usize) -> Problem {
    let detail = format!(
        "the array has {items} items and may have {JSON_ITEMS}: send several arrays, or a batch as NDJSON, which has no limit"
    );
    Problem::too_large("too_many_items", detail)
}
