use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use super::answer::Refusal;
use crate::service::metrics::{self, RequestMeters};
use crate::service::site::Site;

/// What every request of a listener goes through, whatever its route: it is counted, and no web page of another site may
/// send it.
pub(super) fn conducted(routes: Router, site: Site, not_found: fn() -> Response) -> Router {
    let check = move |request: Request, next: Next| {
        let site = site.clone();
        async move {
            match site.admits(&request) {
                Ok(()) => next.run(request).await,
                Err(problem) => Refusal::from(problem).into_response(),
            }
        }
    };
    // axum would answer it by the handler of GET, which takes jobs.
    let no_head = move |request: Request, next: Next| async move {
        if request.method() == Method::HEAD { not_found() } else { next.run(request).await }
    };
    routes
        .fallback(async move || not_found())
        .method_not_allowed_fallback(async move || not_found())
        .layer(from_fn(no_head))
        .layer(from_fn(check))
        .layer(from_fn_with_state(RequestMeters::new(), metrics::count))
}
