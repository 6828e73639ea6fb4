use axum::Json;
use axum::extract::State;
use axum::response::Response;
use delayline_core::Command;
use delayline_http::JobPage;
use delayline_http::dead::{self, Dead};
use delayline_tokio::{Cursor, DeadMoved, Error, JobId, QueueName};

use super::options::Said;
use super::path::InPath;
use crate::service::app::Shared;
use crate::service::body::Inbound;
use crate::service::rejection::{Rejection, respond};

pub(super) async fn list(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(mut options): Said,
) -> Result<Json<JobPage>, Rejection> {
    let cursor: Option<Cursor> = options.read("cursor")?;
    let count = options.in_range("count", 1..=256)?.unwrap_or(100);
    options.finish()?;
    let page = app.client.bytes(&queue)?.dead_letters(count, cursor.as_ref()).await?;
    Ok(Json(JobPage::new(&queue, page.items, page.next.as_ref())))
}

/// Moves as many at once as the queue takes.
async fn each<F>(ids: Vec<JobId>, moving: impl Fn(Vec<JobId>) -> F) -> Result<DeadMoved, Error>
where
    F: Future<Output = Result<DeadMoved, Error>>,
{
    let mut all = DeadMoved { moved: 0, left: 0, outcomes: Vec::new() };
    for ids in ids.chunks(Command::JOBS_MAX) {
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
    let moved = match Dead::read(&body.json().await?)? {
        Dead::Ids(ids) => each(ids, |ids| queue.requeue(ids)).await?,
        Dead::All => queue.requeue_all().await?,
    };
    Ok(respond(dead::requeued(moved.moved, moved.left)))
}

pub(super) async fn purge(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let queue = app.client.bytes(&queue)?;
    let moved = match Dead::read(&body.json().await?)? {
        Dead::Ids(ids) => each(ids, |ids| queue.purge(ids)).await?,
        Dead::All => queue.purge_all().await?,
    };
    Ok(respond(dead::purged(moved.moved, moved.left)))
}
