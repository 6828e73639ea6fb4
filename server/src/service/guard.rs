use std::convert::Infallible;
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use delayline_http::{BearerToken, Problem, Route, Scope};
use delayline_tokio::QueueName;

use crate::service::access;
use crate::service::app::Shared;
use crate::service::audit::Act;
use crate::service::rejection::Rejection;
use crate::service::tokens::Caller;

/// The handler of a route, for callers who may do what the route is for.
pub(crate) fn guarded(
    app: &Shared,
    route: &'static Route,
    handler: MethodRouter<Shared, Infallible>,
) -> MethodRouter<Shared, Infallible> {
    let Some(scope) = route.scope else { return handler };
    let app = Arc::clone(app);
    handler.layer(from_fn(move |request, next| {
        let app = Arc::clone(&app);
        async move { guard(&app, route, scope, request, next).await.unwrap_or_else(IntoResponse::into_response) }
    }))
}

async fn guard(
    app: &Shared,
    route: &'static Route,
    scope: Scope,
    mut request: Request,
    next: Next,
) -> Result<Response, Rejection> {
    let caller = app.tokens.caller(shown(request.headers())?).await?;
    caller.may(scope)?;
    let bytes = request.body().size_hint().lower();
    let _under_way = caller.requests(bytes)?;
    let act = (scope == Scope::Admin && route.method != "GET").then(|| {
        let client = request.extensions().get().copied();
        Act::new(route, request.uri().path(), caller.name(), client)
    });
    if let Some(name) = caller.name() {
        access::note_token(&request, name);
    }
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    if let Some(act) = act {
        app.audit.record(&act, response.status().as_u16()).await;
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
        parts.extensions.get().ok_or_else(unguarded)
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
