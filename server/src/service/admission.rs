use std::sync::Arc;

use axum::Router;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use delayline_http::Problem;

use crate::service::body::Inbound;
use crate::service::limits::Patience;
use crate::service::peers::{Peers, TooFast};
use crate::service::request_context::RequestContext;

/// What those ask who watch over the service. They are answered however much others ask from the same address: else the
/// service would count as broken, and be started anew.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// What is needed to let requests in, of any listener.
#[derive(Clone)]
pub(crate) struct Admission {
    pub(crate) peers: Arc<Peers>,
    pub(crate) patience: Patience,
    /// How a client is told that it has asked too much.
    pub(crate) refusal: fn(Problem) -> Response,
}

impl Admission {
    /// Before each of these routes, if anything is asked of clients' rates.
    pub(crate) fn before(self, router: Router) -> Router {
        if self.peers.has_rates() { router.layer(from_fn_with_state(self, check)) } else { router }
    }
}

/// Lets a request in if its client has not asked too much. One that has is told so before its body is read.
async fn check(State(admission): State<Admission>, request: Request, next: Next) -> Response {
    RequestContext::note_route(&request);
    let Admission { peers, patience, refusal } = admission;
    let client = RequestContext::of(request.extensions()).client;
    let Some(client) = client.filter(|_| !PROBES.contains(&request.uri().path())) else {
        return next.run(request).await;
    };
    let announced = request.body().size_hint().exact().unwrap_or(0);
    match peers.asks(client, announced) {
        Ok(()) => next.run(request).await,
        Err(too_fast) => {
            let (parts, body) = request.into_parts();
            Inbound::of(&parts, body, patience).linger();
            refusal(problem(&too_fast))
        }
    }
}

fn problem(too_fast: &TooFast) -> Problem {
    let (code, what, option, limit, exceeded) = match too_fast {
        TooFast::Requests(limit, exceeded) => {
            ("too_many_requests", "requests", "--client-requests", limit, exceeded)
        }
        TooFast::BodyBytes(limit, exceeded) => {
            ("too_many_bytes", "bytes of bodies", "--client-body-bytes", limit, exceeded)
        }
    };
    let detail = format!(
        "this address may send {limit} {what}: ask less often, as by batches, or raise {option}; a proxy is named by \
         --trusted-proxy"
    );
    Problem::new(429, code, detail).retry_after(exceeded.retry_after_s())
}
