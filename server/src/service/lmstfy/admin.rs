//! Tokens, their limits, and what there is: lmstfy's admin API.

mod about;
mod accounts;
mod limits;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::extract::RawPathParams;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};

use super::answer::Refusal;
use super::{Lmstfy, conduct};
use crate::service::reception::Reception;
use crate::service::site::Site;

pub(super) use self::accounts::Accounts;

/// The routes for administrators.
pub(super) fn administrators(lmstfy: &Arc<Lmstfy>, site: Site) -> Reception {
    use MethodFilter as Method;

    let limit = on(Method::GET, limits::show)
        .on(Method::POST, limits::add)
        .on(Method::PUT, limits::set)
        .on(Method::DELETE, limits::delete);
    let private = Router::new()
        .route("/token/{namespace}", on(Method::GET, tokens::list).on(Method::POST, tokens::make))
        .route("/token/{namespace}/{token}", on(Method::DELETE, tokens::delete))
        .route("/token/{namespace}/{token}/limit", limit)
        .route("/limits", on(Method::GET, limits::list))
        .route("/accesslog", on(Method::POST, about::set_access_log))
        .route_layer(from_fn_with_state(Arc::clone(lmstfy), accounts::check));
    let public = Router::new()
        .route("/pools", on(Method::GET, about::pools))
        .route("/version", on(Method::GET, about::version))
        .route("/info", on(Method::GET, about::info))
        .route("/metrics", on(Method::GET, about::metrics))
        .route("/accesslog", on(Method::GET, about::access_log));
    let routes = private.merge(public).with_state(Arc::clone(lmstfy));
    conduct::conducted(&lmstfy.app, routes, site, page_not_found)
}

fn page_not_found() -> Response {
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "text/plain")], "404 page not found").into_response()
}

/// A part of the path.
fn param<'a>(params: &'a RawPathParams, name: &str) -> &'a str {
    params.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value)
}

fn no_such_pool() -> Refusal {
    Refusal::bad("the pool was not exists")
}
