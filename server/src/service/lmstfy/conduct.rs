use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};

use super::answer::Refusal;
use crate::service::admission::Admission;
use crate::service::app::App;
use crate::service::reception::Reception;
use crate::service::request_context::RequestContext;
use crate::service::site::Site;

/// What every request of a listener goes through, whatever its route.
pub(super) fn conducted(app: &App, routes: Router, site: Site, not_found: fn() -> Response) -> Reception {
    let refusal = |problem| Refusal::from(problem).into_response();
    let noted = move |request: Request, next: Next| async move {
        RequestContext::note_route(&request);
        // axum would answer it by the handler of GET, which takes jobs.
        if request.method() == Method::HEAD { not_found() } else { next.run(request).await }
    };
    let routes = routes
        .fallback(async move || not_found())
        .method_not_allowed_fallback(async move || not_found())
        .layer(from_fn(noted));
    let admission = Admission { peers: Arc::clone(&app.peers), patience: app.patience, refusal };
    Reception::new(admission.before(routes), site, refusal)
}
