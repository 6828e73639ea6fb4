use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use delayline_http::Problem;

use crate::service::app::Shared;
use crate::service::rejection::Rejection;
use crate::service::tokens::Caller;

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The process runs, and can do its work.
pub(super) async fn healthz(State(app): State<Shared>) -> Result<&'static str, Rejection> {
    app.client.failure().map_or(Ok("ok\n"), |ended| Err(ended.into()))
}

/// Redis answers.
pub(super) async fn readyz(State(app): State<Shared>) -> Result<&'static str, Rejection> {
    if app.is_closing() {
        return Err(Problem::later("shutting_down", "the service is shutting down: use another").into());
    }
    app.client.ping().await?;
    Ok("ok\n")
}

pub(super) async fn metrics(State(app): State<Shared>, caller: Caller) -> Result<Response, Rejection> {
    caller.reaches_all()?;
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], app.metrics().await).into_response())
}
