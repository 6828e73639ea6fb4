use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use delayline_http::{Cancel, Inspect, Publish, Reschedule};
use delayline_tokio::{JobId, QueueName};

use super::options::{Said, headers_of};
use super::path::InPath;
use crate::app::Shared;
use crate::body::{Empty, Inbound};
use crate::rejection::{Rejection, respond};

pub(super) async fn publish(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    headers: HeaderMap,
    body: Inbound,
) -> Result<Response, Rejection> {
    let (publish, draft) = Publish::read(queue, options, &headers_of(&headers))?;
    let body = body.whole(app.max_payload.bytes).await;
    let body = body.map_err(|unread| unread.problem(|| app.max_payload.exceeded()))?;
    let draft = publish.with_body(draft, body)?;
    let published = app.publish(&publish.queue, draft).await?;
    let found = if published.duplicate { app.inspect(&publish.queue, &published.id).await } else { Ok(None) };
    Ok(respond(publish.answer(&published, found)?))
}

pub(super) async fn inspect(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
) -> Result<Response, Rejection> {
    let inspect = Inspect::read(queue, id, options)?;
    let found = app.inspect(&inspect.queue, &inspect.id).await?;
    Ok(respond(inspect.answer(found)?))
}

pub(super) async fn cancel(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let cancel = Cancel::read(queue, id, options)?;
    let outcome = app.client.bytes(&cancel.queue)?.cancel(&cancel.id).await?;
    Ok(respond(cancel.answer(outcome)?))
}

pub(super) async fn reschedule(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let reschedule = Reschedule::read(queue, id, &body.document().await?)?;
    let queue = app.client.bytes(&reschedule.queue)?;
    let rescheduled = queue.reschedule(&reschedule.id, reschedule.due).await?;
    Ok(respond(reschedule.answer(rescheduled.outcome, rescheduled.due)?))
}
