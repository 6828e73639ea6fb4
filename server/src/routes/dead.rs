use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use delayline_http::{Kept, Problem, Written, items};
use delayline_tokio::{Cursor, DeadMoved, Error, JobId, QueueName};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::options::Said;
use super::path::InPath;
use crate::app::Shared;
use crate::body::Inbound;
use crate::rejection::Rejection;

#[derive(Serialize)]
pub(super) struct DeadLetters {
    jobs: Vec<Kept>,
    cursor: Option<Written<Cursor>>,
}

pub(super) async fn list(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(mut options): Said,
) -> Result<Json<DeadLetters>, Rejection> {
    let cursor: Option<Cursor> = options.read("cursor")?;
    let count = options.in_range("count", 1..=256)?.unwrap_or(100);
    options.finish()?;
    let page = app.client.bytes(&queue)?.dead_letters(count, cursor.as_ref()).await?;
    let jobs: Vec<Kept> = page.items.into_iter().map(|job| Kept::new(&queue, job)).collect();
    Ok(Json(DeadLetters { jobs, cursor: page.next.map(Written) }))
}

const IDS_AT_ONCE: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which<'a> {
    #[serde(borrow)]
    ids: Option<&'a RawValue>,
    #[serde(default)]
    all: bool,
}

/// The dead letters that a body names; `None` for all.
async fn which(body: Inbound) -> Result<Option<Vec<JobId>>, Problem> {
    const WANTED: &str = "write {\"ids\": [\"…\"]} or {\"all\": true}";
    let body = body.json().await?;
    let unread = |error| Problem::bad("bad_json", format!("the body cannot be read: {error}: {WANTED}"));
    match serde_json::from_slice(&body).map_err(unread)? {
        Which { ids: None, all: true } => Ok(None),
        Which { ids: Some(ids), all: false } if ids.get() != "[]" => {
            let ids = items(ids.get().as_bytes(), unread)?;
            let ids = ids.into_iter().map(|id| serde_json::from_str(id.get()).map(|Written(id)| id));
            Ok(Some(ids.collect::<Result<_, _>>().map_err(unread)?))
        }
        _ => Err(Problem::bad("bad_json", format!("the body must name ids or all: {WANTED}"))),
    }
}

/// Moves as many at once as the queue takes.
async fn each<F>(ids: Vec<JobId>, moving: impl Fn(Vec<JobId>) -> F) -> Result<DeadMoved, Error>
where
    F: Future<Output = Result<DeadMoved, Error>>,
{
    let mut all = DeadMoved { moved: 0, left: 0, outcomes: Vec::new() };
    for ids in ids.chunks(IDS_AT_ONCE) {
        let moved = moving(ids.to_vec()).await?;
        all.moved += moved.moved;
        all.left = moved.left;
        all.outcomes.extend(moved.outcomes);
    }
    Ok(all)
}

pub(super) async fn requeue(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let queue = app.client.bytes(&queue)?;
    let moved = match which(body).await? {
        Some(ids) => each(ids, |ids| queue.requeue(ids)).await?,
        None => queue.requeue_all().await?,
    };
    Ok(Json(json!({ "requeued": moved.moved, "left": moved.left })).into_response())
}

pub(super) async fn purge(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let queue = app.client.bytes(&queue)?;
    let moved = match which(body).await? {
        Some(ids) => each(ids, |ids| queue.purge(ids)).await?,
        None => queue.purge_all().await?,
    };
    Ok(Json(json!({ "purged": moved.moved, "left": moved.left })).into_response())
}
