use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use delayline_http::Problem;
use delayline_tokio::Namespace;
use serde_json::json;

use super::options::Said;
use super::path::InPath;
use crate::service::app::Shared;
use crate::service::body::{Empty, Inbound};
use crate::service::namespaces::Ceilings;
use crate::service::rejection::Rejection;
use crate::service::tokens::Caller;

pub(super) async fn list(
    State(app): State<Shared>,
    caller: Caller,
    Said(options): Said,
) -> Result<Response, Rejection> {
    options.finish()?;
    let (found, is_cut) = app.namespaces.list(|queue| caller.reaches(queue)).await?;
    let found = found.iter().map(|(namespace, queues)| json!({ "namespace": namespace, "queues": queues }));
    let found: Vec<_> = found.collect();
    Ok(Json(json!({ "namespaces": found, "is_cut": is_cut })).into_response())
}

pub(super) async fn show(
    State(app): State<Shared>,
    caller: Caller,
    InPath(namespace): InPath<Namespace>,
    Said(options): Said,
) -> Result<Response, Rejection> {
    options.finish()?;
    let sample = app.namespaces.sample(&namespace, |queue| caller.reaches(queue)).await?;
    let ceilings = match caller.reaches_all() {
        Ok(()) => app.namespaces.ceilings(&namespace).await?,
        Err(_) => None,
    };
    if sample.queues.is_empty() && ceilings.is_none() {
        return Err(no_such_namespace(&namespace).into());
    }
    let sizes = json!({
        "ready": sample.ready, "delayed": sample.delayed, "leased": sample.leased, "dead": sample.dead
    });
    let shown = json!({
        "namespace": namespace.as_str(), "queues": sample.queues.len(), "sizes": sizes, "bytes": sample.bytes,
        "ceilings": ceilings.unwrap_or_default()
    });
    Ok(Json(shown).into_response())
}

pub(super) async fn limit(
    State(app): State<Shared>,
    caller: Caller,
    InPath(namespace): InPath<Namespace>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    caller.reaches_all()?;
    let ceilings = Ceilings::read(&body.document().await?)?;
    app.namespaces.limit(&namespace, ceilings).await?;
    Ok(Json(json!({ "namespace": namespace.as_str(), "ceilings": ceilings })).into_response())
}

pub(super) async fn unlimit(
    State(app): State<Shared>,
    caller: Caller,
    InPath(namespace): InPath<Namespace>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    options.finish()?;
    caller.reaches_all()?;
    if app.namespaces.unlimit(&namespace).await? {
        Ok(Json(json!({ "namespace": namespace.as_str(), "ceilings": Ceilings::default() })).into_response())
    } else {
        Err(no_such_namespace(&namespace).into())
    }
}

fn no_such_namespace(namespace: &Namespace) -> Problem {
    let detail = format!("there is nothing of a namespace {namespace}: neither a queue nor a ceiling");
    Problem::not_found("no_such_namespace", detail)
}
