use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::service::app::Shared;
use crate::service::client_address::ClientAddress;
use crate::service::peers::Peer;

/// By whose connection a request came.
pub(super) struct Sender(pub(super) Arc<Peer>);

impl FromRequestParts<Shared> for Sender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Sender, Infallible> {
        Ok(Sender(app.peers.of(parts)))
    }
}

/// For whom a request is made; nobody can tell of one that came over no connection.
pub(super) struct Client(pub(super) Option<ClientAddress>);

impl FromRequestParts<Shared> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Client, Infallible> {
        Ok(Client(parts.extensions.get().copied()))
    }
}
