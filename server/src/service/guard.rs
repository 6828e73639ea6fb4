use std::future::Future;
use std::pin::Pin;

use axum::body::HttpBody;
use axum::extract::{FromRequestParts, Request};
use axum::handler::Handler;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use delayline_http::{BearerToken, Problem, Route, Scope};
use delayline_tokio::QueueName;

use crate::service::app::Shared;
use crate::service::audit::Act;
use crate::service::rejection::Rejection;
use crate::service::request_context::RequestContext;
use crate::service::tokens::Caller;

/// A route whose handler is called for those alone who may do what the route is for.
#[derive(Clone, Copy)]
pub(crate) struct Guard(pub(crate) &'static Route);

/// A handler with a guard before it. It is no layer, which would be cloned and boxed for each request.
#[derive(Clone)]
struct Guarded<H> {
    route: &'static Route,
    handler: H,
}

impl Guard {
    /// The route with this handler.
    pub(crate) fn before<H, T>(self, handler: H) -> MethodRouter<Shared>
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        let Guard(route) = self;
        let method = Method::from_bytes(route.method.as_bytes()).ok();
        let method = method.and_then(|method| MethodFilter::try_from(method).ok());
        on(method.expect("a method that routes can have"), Guarded { route, handler })
    }
}

impl<T, H: Handler<T, Shared>> Handler<T, Shared> for Guarded<H> {
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, app: Shared) -> Self::Future {
        RequestContext::note_route(&request);
        let Guarded { route, handler } = self;
        Box::pin(async move {
            match route.scope {
                Some(scope) => guarded(app, route, scope, request, handler)
                    .await
                    .unwrap_or_else(IntoResponse::into_response),
                None => handler.call(request, app).await,
            }
        })
    }
}

async fn guarded<T, H: Handler<T, Shared>>(
    app: Shared,
    route: &'static Route,
    scope: Scope,
    request: Request,
    handler: H,
) -> Result<Response, Rejection> {
    let caller = app.tokens.caller(shown(request.headers())?).await?;
    caller.may(scope)?;
    let _under_way = caller.requests(request.body().size_hint().lower())?;
    let context = RequestContext::of(request.extensions());
    let act = (scope == Scope::Admin && route.method != "GET").then(|| {
        let act = Act::new(route, request.uri().path(), caller.name(), context.client);
        (act, app.audit.clone())
    });
    context.note_caller(caller);
    let response = handler.call(request, app).await;
    if let Some((act, audit)) = act {
        audit.record(&act, response.status().as_u16()).await;
    }
    Ok(response)
}

/// The token that a request shows.
pub(crate) fn shown(headers: &HeaderMap) -> Result<Option<&[u8]>, Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(given), None) => Ok(BearerToken::shown(given.as_bytes())),
        (Some(_), Some(_)) => {
            Err(Problem::bad("bad_header", "there is more than one header Authorization: send one"))
        }
    }
}

impl Caller {
    /// Who asks by this request. A route without a guard has no caller: nothing is done for nobody.
    pub(crate) fn asking(parts: &Parts) -> Result<&Caller, Problem> {
        let unguarded = || Problem::new(500, "unguarded", "the route asks nobody who they are");
        RequestContext::of(&parts.extensions).caller().ok_or_else(unguarded)
    }

    /// Refuses a queue that the caller's token is not for, as one that is not there is refused.
    pub(crate) fn must_reach(&self, queue: &QueueName) -> Result<(), Problem> {
        if self.reaches(queue) {
            return Ok(());
        }
        let detail = format!(
            "there is no queue {queue} for this token: check its name, and which queues the token is for"
        );
        Err(Problem::not_found("no_such_queue", detail))
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Rejection> {
        Ok(Caller::asking(parts)?.clone())
    }
}
