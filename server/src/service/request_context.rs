use std::sync::{Arc, OnceLock};

use axum::extract::{MatchedPath, Request};
use axum::http::Extensions;
use tracing::{Level, Span};

use crate::service::client_address::ClientAddress;
use crate::service::peers::Peer;
use crate::service::tokens::Caller;

/// A request that has come, and what becomes known of it on its way to its handler. The extensions of every request have it:
/// one entry for all, as each is an allocation.
pub(crate) struct RequestContext {
    pub(crate) peer: Arc<Peer>,
    /// For whom it is made; nobody can tell of one that came over no connection.
    pub(crate) client: Option<ClientAddress>,
    route: OnceLock<MatchedPath>,
    caller: OnceLock<Caller>,
}

impl RequestContext {
    pub(crate) fn new(peer: Arc<Peer>, client: Option<ClientAddress>) -> Arc<RequestContext> {
        Arc::new(RequestContext { peer, client, route: OnceLock::new(), caller: OnceLock::new() })
    }

    /// The context of a request with these extensions.
    ///
    /// # Panics
    /// If the request was given to a router by itself, and not to its [`Reception`](super::reception::Reception).
    pub(crate) fn of(extensions: &Extensions) -> &Arc<RequestContext> {
        extensions.get().expect("a request comes by a reception")
    }

    /// The request has come to the route that its extensions name.
    pub(crate) fn note_route(request: &Request) {
        let Some(route) = request.extensions().get::<MatchedPath>() else { return };
        let _ = RequestContext::of(request.extensions()).route.set(route.clone());
        if tracing::enabled!(Level::DEBUG) {
            Span::current().record("route", route.as_str());
        }
    }

    /// The path of its route, as the table of routes has it; `None` until it is known, and if there is none.
    pub(crate) fn route(&self) -> Option<&str> {
        self.route.get().map(MatchedPath::as_str)
    }

    /// The request is made by this caller.
    pub(crate) fn note_caller(&self, caller: Caller) {
        let _ = self.caller.set(caller);
    }

    /// Who makes it, once that is known.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.caller.get()
    }
}
