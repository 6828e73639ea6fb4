use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use delayline_http::{Problem, Segment, named};

use crate::rejection::Rejection;

/// A part of the path, read.
pub(crate) struct InPath<T>(pub(crate) T);

impl<T: Segment, S: Send + Sync> FromRequestParts<S> for InPath<T> {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InPath<T>, Rejection> {
        let path = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::bad("bad_path", error))?;
        let text = path.iter().find(|(name, _)| *name == T::NAME).map_or("", |(_, value)| value);
        Ok(InPath(named(text)?))
    }
}
