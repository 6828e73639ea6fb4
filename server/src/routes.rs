mod batch;
mod dead;
mod health;
mod jobs;
mod leases;
mod options;
mod path;
mod queues;
mod sender;
mod take;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post, put};
use delayline_http::Problem;

use crate::app::Shared;
use crate::metrics;
use crate::rejection::Rejection;
use crate::site;

/// Every route of the service.
pub(crate) fn router(app: &Shared) -> Router {
    Router::new()
        .nest("/v1", v1())
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .fallback(no_such_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(app), site::check))
        .layer(from_fn(metrics::count))
        .with_state(Arc::clone(app))
}

fn v1() -> Router<Shared> {
    Router::new()
        .route("/queues/{queue}/jobs", post(jobs::publish))
        .route("/queues/{queue}/batch", post(batch::publish))
        .route("/queues/{queue}/jobs/{id}", get(jobs::inspect).delete(jobs::cancel).patch(jobs::reschedule))
        .route("/take", post(take::take))
        .route("/leases/settle", post(leases::settle_many))
        .route("/leases/{lease}/ack", post(leases::ack))
        .route("/leases/{lease}/nack", post(leases::nack))
        .route("/leases/{lease}/snooze", post(leases::snooze))
        .route("/leases/{lease}/release", post(leases::release))
        .route("/leases/{lease}/bury", post(leases::bury))
        .route("/leases/{lease}/extend", post(leases::extend))
        .route("/queues", get(queues::list))
        .route("/queues/{queue}", get(queues::show).delete(queues::destroy))
        .route("/queues/{queue}/config", put(queues::configure))
        .route("/queues/{queue}/pause", post(queues::pause))
        .route("/queues/{queue}/resume", post(queues::resume))
        .route("/queues/{queue}/dead", get(dead::list))
        .route("/queues/{queue}/dead/requeue", post(dead::requeue))
        .route("/queues/{queue}/dead/purge", post(dead::purge))
}

async fn no_such_route(method: Method, uri: Uri) -> Rejection {
    Problem::no_such_route(method.as_str(), uri.path()).into()
}

async fn method_not_allowed(method: Method, uri: Uri) -> Rejection {
    Problem::method_not_allowed(method.as_str(), uri.path()).into()
}
