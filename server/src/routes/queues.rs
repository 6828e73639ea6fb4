use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use delayline_http::{Document, Options, Problem, Show, Written, etag, no_such_queue};
use delayline_tokio::{Cursor, Error, Queue, QueueName};
use serde_json::json;

use super::options::Said;
use super::path::InPath;
use crate::app::Shared;
use crate::body::{Empty, Inbound};
use crate::rejection::{Rejection, respond};

pub(super) async fn list(State(app): State<Shared>, Said(mut options): Said) -> Result<Response, Rejection> {
    let cursor: Option<Cursor> = options.read("cursor")?;
    let count = options.in_range("count", 1..=1_000)?.unwrap_or(100);
    options.finish()?;
    let page = app.client.queues(cursor.as_ref(), count).await?;
    let queues: Vec<&str> = page.items.iter().map(QueueName::as_str).collect();
    Ok(Json(json!({ "queues": queues, "cursor": page.next.map(Written) })).into_response())
}

pub(super) async fn show(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
) -> Result<Response, Rejection> {
    let show = Show::read(queue, options)?;
    let stats = app.client.bytes(&show.queue)?.stats(show.hours).await?;
    Ok(respond(show.answer(stats)?))
}

pub(super) async fn configure(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    headers: HeaderMap,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let replaces = if_match(&headers)?;
    let config = Document::read(&body.document().await?)?;
    if config.forward.is_some() && app.client.is_memory() {
        return Err(Problem::bad(
            "forward_needs_redis",
            "in memory there is no list or stream to forward to: start the service with --redis",
        )
        .into());
    }
    let queue = app.client.bytes(&queue)?;
    if let Some(forward) = &config.forward
        && let Err(refused) = app.forwarding.check(forward)
        // What an admin has set may stay.
        && queue.stats(0).await?.config.forward.as_ref() != Some(forward)
    {
        return Err(refused.into());
    }
    match queue.configure(config.clone(), replaces).await {
        Ok(cfgver) => {
            let body = json!({ "cfgver": cfgver, "config": Document::from(config) });
            Ok(([(header::ETAG, etag(cfgver))], Json(body)).into_response())
        }
        Err(Error::Conflict { cfgver, .. }) => {
            let detail = format!(
                "the config is at version {cfgver}, not the one in If-Match, and is unchanged: read it and try again"
            );
            Err(Problem::new(412, "config_conflict", detail).into())
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn pause(
    app: State<Shared>,
    queue: InPath<QueueName>,
    Said(mut options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let create = options.read("create")?.unwrap_or_default();
    set_paused(app, queue, options, true, create).await
}

pub(super) async fn resume(
    app: State<Shared>,
    queue: InPath<QueueName>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    set_paused(app, queue, options, false, false).await
}

async fn set_paused(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    options: Options,
    paused: bool,
    create: bool,
) -> Result<Response, Rejection> {
    options.finish()?;
    let queue = app.client.bytes(&queue)?;
    if !create {
        must_exist(&queue).await?;
    }
    let cfgver = if paused { queue.pause().await? } else { queue.resume().await? };
    Ok(([(header::ETAG, etag(cfgver))], Json(json!({ "paused": paused, "cfgver": cfgver }))).into_response())
}

pub(super) async fn destroy(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    options.finish()?;
    let sizes = app.client.bytes(&queue)?.destroy().await?.ok_or_else(|| no_such_queue(&queue))?;
    let destroyed = json!({ "waiting": sizes.waiting, "leased": sizes.leased, "dead": sizes.dead });
    Ok(Json(json!({ "queue": queue.as_str(), "destroyed": destroyed })).into_response())
}

/// Fails if there is no such queue: a name that was misspelt makes none.
pub(super) async fn must_exist(queue: &Queue) -> Result<(), Rejection> {
    match queue.stats(0).await?.born {
        Some(_) => Ok(()),
        None => Err(no_such_queue(queue.name()).into()),
    }
}

/// The version that `If-Match` names, with quotes or without; `*` is any.
fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let refused =
        || Problem::bad("bad_header", "If-Match is no version: pass the ETag or cfgver of the queue");
    bare.parse().map(Some).map_err(|_| refused())
}
