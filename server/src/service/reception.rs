use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use delayline_http::Problem;
use tower_service::Service;

use crate::service::metrics::RequestMeters;
use crate::service::request_context::RequestContext;
use crate::service::site::Site;

/// What every request of a listener goes through, whatever its route: no web page of another site may send it, and it is
/// counted. This is no layer of the router, which would clone and box each of its layers for each request.
#[derive(Clone)]
pub(crate) struct Reception {
    router: Router,
    entry: Option<Entry>,
}

#[derive(Clone)]
struct Entry {
    site: Site,
    /// How who is not let in is told so.
    refusal: fn(Problem) -> Response,
    meters: Arc<RequestMeters>,
}

impl Reception {
    /// Before these routes, which are at this site.
    pub(crate) fn new(router: Router, site: Site, refusal: fn(Problem) -> Response) -> Reception {
        Reception { router, entry: Some(Entry { site, refusal, meters: RequestMeters::new() }) }
    }

    /// Lets everything through, and counts nothing.
    pub(crate) fn open(router: Router) -> Reception {
        Reception { router, entry: None }
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, context: Arc<RequestContext>, mut request: Request) -> Response {
        request.extensions_mut().insert(Arc::clone(&context));
        let Some(entry) = &self.entry else { return self.pass(request).await };
        let (method, begun) = (RequestMeters::known(request.method()), Instant::now());
        let response = match entry.site.admits(&context.peer, &request) {
            Ok(()) => self.pass(request).await,
            Err(problem) => (entry.refusal)(problem),
        };
        entry.meters.count(context.route(), method, response.status(), begun);
        response
    }

    async fn pass(&self, request: Request) -> Response {
        let Ok(response) = self.router.clone().call(request).await;
        response
    }
}
