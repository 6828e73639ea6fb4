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
use axum::extract::Request;
use axum::http::Method;
use axum::response::IntoResponse;
use axum::routing::MethodRouter;
use delayline_http::{Operation, Problem, ROUTES, Route};

use crate::service::admission::Admission;
use crate::service::app::Shared;
use crate::service::guard::Guard;
use crate::service::origins::Sharing;
use crate::service::reception::Reception;
use crate::service::rejection::Rejection;
use crate::service::request_context::RequestContext;

/// What pages may do whose origin is allowed.
const SHARING: Sharing = Sharing {
    methods: &[Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE],
    exposed: &["allow", "etag", "location", "retry-after", "x-request-id"],
};

/// Every route of the service.
pub(crate) fn reception(app: &Shared) -> Reception {
    let refusal = |problem| Rejection(problem).into_response();
    let routes = ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, served(route)));
    let routes = routes.fallback(no_such_route).method_not_allowed_fallback(method_not_allowed);
    let admission = Admission { peers: Arc::clone(&app.peers), patience: app.patience, refusal };
    let routes = admission.before(routes.with_state(Arc::clone(app)));
    // Outside of what refuses a request, so that the page can read why.
    let routes = match app.site.origins().layer(&SHARING) {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    Reception::new(routes, app.site.clone(), refusal)
}

fn served(route: &'static Route) -> MethodRouter<Shared> {
    let guard = Guard(route);
    match route.operation {
        Operation::Publish => guard.before(jobs::publish),
        Operation::PublishBatch => guard.before(batch::publish),
        Operation::InspectJob => guard.before(jobs::inspect),
        Operation::CancelJob => guard.before(jobs::cancel),
        Operation::RescheduleJob => guard.before(jobs::reschedule),
        Operation::ListJobs => guard.before(jobs::list),
        Operation::CancelMany => guard.before(jobs::cancel_many),
        Operation::RescheduleMany => guard.before(jobs::reschedule_many),
        Operation::ReleaseJob => guard.before(jobs::release),
        Operation::Take => guard.before(take::take),
        Operation::SettleMany => guard.before(leases::settle_many),
        Operation::Ack => guard.before(leases::ack),
        Operation::Nack => guard.before(leases::nack),
        Operation::Snooze => guard.before(leases::snooze),
        Operation::Release => guard.before(leases::release),
        Operation::Bury => guard.before(leases::bury),
        Operation::Extend => guard.before(leases::extend),
        Operation::ListQueues => guard.before(queues::list),
        Operation::ShowQueue => guard.before(queues::show),
        Operation::DestroyQueue => guard.before(queues::destroy),
        Operation::ShowConfig => guard.before(queues::show_config),
        Operation::ConfigureQueue => guard.before(queues::configure),
        Operation::PatchConfig => guard.before(queues::patch),
        Operation::PauseQueue => guard.before(queues::pause),
        Operation::ResumeQueue => guard.before(queues::resume),
        Operation::ListDead => guard.before(dead::list),
        Operation::RequeueDead => guard.before(dead::requeue),
        Operation::PurgeDead => guard.before(dead::purge),
        Operation::ListNamespaces => guard.before(namespaces::list),
        Operation::ShowNamespace => guard.before(namespaces::show),
        Operation::LimitNamespace => guard.before(namespaces::limit),
        Operation::UnlimitNamespace => guard.before(namespaces::unlimit),
        Operation::ListTokens => guard.before(tokens::list),
        Operation::CreateToken => guard.before(tokens::create),
        Operation::RotateToken => guard.before(tokens::rotate),
        Operation::RevokeToken => guard.before(tokens::revoke),
        Operation::Health => guard.before(health::healthz),
        Operation::Ready => guard.before(health::readyz),
        Operation::Metrics => guard.before(health::metrics),
        Operation::OpenApi => guard.before(document::json),
        Operation::Docs => guard.before(document::page),
    }
}

async fn no_such_route(request: Request) -> Rejection {
    Problem::no_such_route(request.method().as_str(), request.uri().path()).into()
}

async fn method_not_allowed(request: Request) -> Rejection {
    RequestContext::note_route(&request);
    Problem::method_not_allowed(request.method().as_str(), request.uri().path()).into()
}
