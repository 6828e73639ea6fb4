use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::service::request_context::RequestContext;

/// Who sent a request, and how.
pub(super) struct Sender(pub(super) Arc<RequestContext>);

impl<S: Sync> FromRequestParts<S> for Sender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Sender, Infallible> {
        Ok(Sender(Arc::clone(RequestContext::of(&parts.extensions))))
    }
}
