mod batch;
mod dead;
mod document;
mod health;
mod jobs;
mod leases;
mod namespaces;
mod options;
mod path;
mod queues;
mod sender;
mod take;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use delayline_http::{Operation, Problem, ROUTES};

use crate::service::admission::{self, Admission};
use crate::service::app::Shared;
use crate::service::guard::guarded;
use crate::service::metrics::{self, RequestMeters};
use crate::service::origins::Sharing;
use crate::service::rejection::Rejection;
use crate::service::site;

/// What pages may do whose origin is allowed.
const SHARING: Sharing = Sharing {
    methods: &[Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE],
    exposed: &["allow", "etag", "location", "retry-after", "x-request-id"],
};

/// Every route of the service.
pub(crate) fn router(app: &Shared) -> Router {
    let router = ROUTES
        .iter()
        .fold(Router::new(), |router, route| {
            router.route(route.path, guarded(app, route, handler(route.operation)))
        })
        .fallback(no_such_route)
        .method_not_allowed_fallback(method_not_allowed);
    let router = if app.peers.has_rates() {
        let admission = Admission { peers: Arc::clone(&app.peers), patience: app.patience };
        router.layer(from_fn_with_state(admission, admission::check))
    } else {
        router
    };
    // Outside of what refuses a request, so that the page can read why.
    let router = match app.site.origins().layer(&SHARING) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router
        .layer(from_fn_with_state(Arc::clone(app), site::check))
        .layer(from_fn_with_state(RequestMeters::new(), metrics::count))
        .with_state(Arc::clone(app))
}

fn handler(operation: Operation) -> MethodRouter<Shared> {
    match operation {
        Operation::Publish => post(jobs::publish),
        Operation::PublishBatch => post(batch::publish),
        Operation::InspectJob => get(jobs::inspect),
        Operation::CancelJob => delete(jobs::cancel),
        Operation::RescheduleJob => patch(jobs::reschedule),
        Operation::ListJobs => get(jobs::list),
        Operation::CancelMany => delete(jobs::cancel_many),
        Operation::RescheduleMany => patch(jobs::reschedule_many),
        Operation::ReleaseJob => post(jobs::release),
        Operation::Take => post(take::take),
        Operation::SettleMany => post(leases::settle_many),
        Operation::Ack => post(leases::ack),
        Operation::Nack => post(leases::nack),
        Operation::Snooze => post(leases::snooze),
        Operation::Release => post(leases::release),
        Operation::Bury => post(leases::bury),
        Operation::Extend => post(leases::extend),
        Operation::ListQueues => get(queues::list),
        Operation::ShowQueue => get(queues::show),
        Operation::DestroyQueue => delete(queues::destroy),
        Operation::ShowConfig => get(queues::show_config),
        Operation::ConfigureQueue => put(queues::configure),
        Operation::PatchConfig => patch(queues::patch),
        Operation::PauseQueue => post(queues::pause),
        Operation::ResumeQueue => post(queues::resume),
        Operation::ListDead => get(dead::list),
        Operation::RequeueDead => post(dead::requeue),
        Operation::PurgeDead => post(dead::purge),
        Operation::ListNamespaces => get(namespaces::list),
        Operation::ShowNamespace => get(namespaces::show),
        Operation::LimitNamespace => put(namespaces::limit),
        Operation::UnlimitNamespace => delete(namespaces::unlimit),
        Operation::ListTokens => get(tokens::list),
        Operation::CreateToken => post(tokens::create),
        Operation::RotateToken => post(tokens::rotate),
        Operation::RevokeToken => delete(tokens::revoke),
        Operation::Health => get(health::healthz),
        Operation::Ready => get(health::readyz),
        Operation::Metrics => get(health::metrics),
        Operation::OpenApi => get(document::json),
        Operation::Docs => get(document::page),
    }
}

async fn no_such_route(method: Method, uri: Uri) -> Rejection {
    Problem::no_such_route(method.as_str(), uri.path()).into()
}

async fn method_not_allowed(method: Method, uri: Uri) -> Rejection {
    Problem::method_not_allowed(method.as_str(), uri.path()).into()
}
