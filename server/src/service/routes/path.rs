use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use delayline_http::{Problem, Segment, named};

use crate::service::rejection::Rejection;
use crate::service::tokens::Caller;

/// A part of the path, read. A queue, and the queue of a lease, is one that the caller's token is for.
pub(crate) struct InPath<T>(pub(crate) T);

impl<T: Segment, S: Send + Sync> FromRequestParts<S> for InPath<T> {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InPath<T>, Rejection> {
        let path = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::bad("bad_path", error))?;
        let text = path.iter().find(|(name, _)| *name == T::NAME).map_or("", |(_, value)| value);
        let segment: T = named(text)?;
        if let Some(queue) = segment.queue() {
            Caller::asking(parts)?.must_reach(queue)?;
        }
        Ok(InPath(segment))
    }
}
