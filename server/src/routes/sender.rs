use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::app::Shared;
use crate::peers::Peer;

/// Whom a request is from.
pub(super) struct Sender(pub(super) Arc<Peer>);

impl FromRequestParts<Shared> for Sender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Sender, Infallible> {
        Ok(Sender(app.peers.of(parts)))
    }
}
