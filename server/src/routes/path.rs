use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use delayline_tokio::{JobId, Lease, QueueName};

use crate::problem::Problem;

/// A part of the path, read.
pub(crate) struct InPath<T>(pub(crate) T);

/// What a part of the path can be.
pub(crate) trait Segment: FromStr<Err: Display> {
    const NAME: &'static str;
    const CODE: &'static str;
}

impl Segment for QueueName {
    const NAME: &'static str = "queue";
    const CODE: &'static str = "bad_queue_name";
}

impl Segment for JobId {
    const NAME: &'static str = "id";
    const CODE: &'static str = "bad_job_id";
}

impl Segment for Lease {
    const NAME: &'static str = "lease";
    const CODE: &'static str = "bad_lease";
}

/// Reads a name, saying what is wrong with it.
pub(crate) fn named<T: Segment>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error| Problem::bad(T::CODE, error))
}

impl<T: Segment, S: Send + Sync> FromRequestParts<S> for InPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InPath<T>, Problem> {
        let path = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::bad("bad_path", error))?;
        let text = path.iter().find(|(name, _)| *name == T::NAME).map_or("", |(_, value)| value);
        named(text).map(InPath)
    }
}
