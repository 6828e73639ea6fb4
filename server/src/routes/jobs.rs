use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use delayline_http::{Draft, Headers, Kept, Options, Problem, Time, Written, due, named};
use delayline_tokio::{CancelOutcome, JobId, Published, QueueName, RescheduleOutcome, Span};
use serde::Deserialize;
use serde_json::json;

use super::options::{Said, headers};
use super::path::InPath;
use crate::app::{App, Shared};
use crate::body::{self, Empty};
use crate::rejection::Rejection;

pub(super) async fn publish(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(mut options): Said,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Rejection> {
    let headers = self::headers(&headers);
    let key = idempotency_key(&headers)?;
    let mut draft = described(&mut options, &headers)?;
    options.finish()?;
    if key.is_some() && draft.id.is_some() {
        return Err(Problem::bad("bad_option", "id and Idempotency-Key exclude each other: give one").into());
    }
    if key.is_some() && draft.replace {
        let detail = "replace and Idempotency-Key exclude each other, as a repeat would replace: give an id";
        return Err(Problem::bad("bad_option", detail).into());
    }
    let (repeatable, replaces) = (key.is_some(), draft.replace);
    draft.id = draft.id.or(key);
    let body = body::whole(body, app.max_payload.bytes).await;
    draft.body = body.map_err(|unread| unread.problem(|| app.max_payload.exceeded()))?;
    let published = app.publish(&queue, draft).await?;
    match published.duplicate {
        false => Ok(created(&queue, &published)),
        true if repeatable => repeated(&app, &queue, &published.id).await,
        true => Err(duplicate(&app, &queue, &published.id, replaces).await.into()),
    }
}

fn described(options: &mut Options, headers: &Headers<'_>) -> Result<Draft, Problem> {
    let id: Option<String> = options.read("id")?;
    Ok(Draft {
        id: id.as_deref().map(named).transpose()?,
        due: due(options.read("delay")?, options.read("at")?)?,
        attempts: options.in_range("attempts", 1..=999)?,
        backoff: options.read("backoff")?,
        ttl: options.read("ttl")?,
        replace: options.read("replace")?.unwrap_or(false),
        headers: options.job_headers(),
        content_type: headers.text("content-type")?.map(String::from),
        ..Draft::default()
    })
}

/// The id of a publish that may be repeated; quotes, as of a structured field, are not part of it.
fn idempotency_key(headers: &Headers<'_>) -> Result<Option<JobId>, Problem> {
    let Some(key) = headers.text("idempotency-key")? else { return Ok(None) };
    let bare = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    named(bare).map(Some)
}

fn created(queue: &QueueName, Published { id, due, replaced, .. }: &Published) -> Response {
    let location = format!("/v1/queues/{queue}/jobs/{id}");
    let mut body = json!({ "id": id.as_str(), "due": due.map(Time) });
    if *replaced {
        body["replaced"] = true.into();
    }
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(body)).into_response()
}

async fn repeated(app: &App, queue: &QueueName, id: &JobId) -> Result<Response, Rejection> {
    let due = app.client.bytes(queue)?.inspect(id).await?.and_then(|job| job.due());
    Ok(Json(json!({ "id": id.as_str(), "due": due.map(Time), "duplicate": true })).into_response())
}

async fn duplicate(app: &App, queue: &QueueName, id: &JobId, replaces: bool) -> Problem {
    let instead = if replaces {
        "only one that waits is replaced: publish with another id, or once it is gone"
    } else {
        "publish with another id, or reschedule or replace it"
    };
    let detail = format!("queue {queue} has a job {id}, which is untouched: {instead}");
    let problem = Problem::conflict("duplicate", detail);
    match app.kept(queue, id).await {
        Ok(Some(job)) => problem.with_job(&job),
        _ => problem,
    }
}

pub(super) async fn inspect(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
) -> Result<Json<Kept>, Rejection> {
    options.finish()?;
    app.kept(&queue, &id).await?.map(Json).ok_or_else(|| no_such_job(&queue, &id))
}

pub(super) async fn cancel(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    options.finish()?;
    match app.client.bytes(&queue)?.cancel(&id).await? {
        CancelOutcome::Cancelled => {
            Ok(Json(json!({ "id": id.as_str(), "status": "cancelled" })).into_response())
        }
        CancelOutcome::Leased => Err(leased(&id, "cancelled")),
        CancelOutcome::Dead => {
            let detail = format!("job {id} is a dead letter and cannot be cancelled: purge it");
            Err(Problem::conflict("dead", detail).into())
        }
        CancelOutcome::Gone => Err(no_such_job(&queue, &id)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reschedule {
    delay: Option<Written<Span>>,
    at: Option<Written<Time>>,
}

pub(super) async fn reschedule(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
    body: Body,
) -> Result<Response, Rejection> {
    const WANTED: &str = "write {\"delay\": \"5s\"} or {\"at\": \"2026-11-21T10:00:05Z\"}";
    options.finish()?;
    let body = body::json(body).await?;
    let Reschedule { delay, at } = serde_json::from_slice(&body)
        .map_err(|error| Problem::bad("bad_json", format!("the body cannot be read: {error}: {WANTED}")))?;
    let Some(due) = due(delay.map(|delay| delay.0), at.map(|at| at.0))? else {
        return Err(Problem::bad("bad_due", format!("the body says no time: {WANTED}")).into());
    };
    let rescheduled = app.client.bytes(&queue)?.reschedule(&id, due).await?;
    match rescheduled.outcome {
        RescheduleOutcome::Moved => {
            Ok(Json(json!({ "id": id.as_str(), "due": rescheduled.due.map(Time) })).into_response())
        }
        RescheduleOutcome::Leased => Err(leased(&id, "rescheduled")),
        RescheduleOutcome::Dead => {
            let detail = format!("job {id} is a dead letter and cannot be rescheduled: requeue it");
            Err(Problem::conflict("dead", detail).into())
        }
        RescheduleOutcome::Expires => {
            let detail = format!("job {id} would expire before that: choose an earlier time");
            Err(Problem::conflict("expires", detail).into())
        }
        RescheduleOutcome::Gone => Err(no_such_job(&queue, &id)),
    }
}

fn leased(id: &JobId, what: &str) -> Rejection {
    let detail = format!("a consumer holds job {id}, so it cannot be {what}: wait until its lease ends");
    Problem::conflict("leased", detail).into()
}

fn no_such_job(queue: &QueueName, id: &JobId) -> Rejection {
    let detail = format!("queue {queue} has no job {id}: it may have been acked, cancelled or expired");
    Problem::not_found("no_such_job", detail).into()
}
