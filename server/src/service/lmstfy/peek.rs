use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use delayline_tokio::{Error, Inspected, JobId, Place, Queue};
use serde::Serialize;

use super::Shared;
use super::answer::{Refusal, json};
use super::job_object::JobObject;
use super::target::Target;

/// How often the first job of a queue is looked for that is taken each time.
const LOOKS: u32 = 8;

/// How many jobs there are of a kind.
#[derive(Serialize)]
pub(super) struct Count<'a> {
    pub(super) namespace: &'a str,
    pub(super) queue: &'a str,
    pub(super) size: u64,
}

/// The job that is handed out next, if one is ready.
pub(super) async fn head(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
) -> Result<Response, Refusal> {
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    match first_ready(&queue).await? {
        Some(job) => Ok(json(StatusCode::OK, &JobObject::peeked(queue.name(), &job, true))),
        None => Err(Refusal::error(StatusCode::NOT_FOUND, "the queue is empty")),
    }
}

/// The first ready job. A list does not say when its jobs expire, so the job is looked at once more.
async fn first_ready(queue: &Queue) -> Result<Option<Inspected>, Error> {
    for _ in 0..LOOKS {
        let page = queue.list(Place::Ready, 1, None).await?;
        let Some(first) = page.items.into_iter().next() else { return Ok(None) };
        if let Some(found) = queue.inspect(&first.id).await?
            && found.place == Place::Ready
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A job by its id, wherever it is.
pub(super) async fn job(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
) -> Result<Response, Refusal> {
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    let found = match target.job.parse::<JobId>() {
        Ok(id) => queue.inspect(id).await?,
        Err(_) => None,
    };
    match found {
        Some(job) => Ok(json(StatusCode::OK, &JobObject::peeked(queue.name(), &job, false))),
        None => Err(Refusal::error(StatusCode::NOT_FOUND, "job not found")),
    }
}

/// How many jobs are ready.
pub(super) async fn size(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
) -> Result<Response, Refusal> {
    let size = lmstfy.app.client.bytes(target.queue()?)?.stats(0).await?.ready;
    let (namespace, queue) = (target.namespace.as_str(), target.own());
    Ok(json(StatusCode::OK, &Count { namespace, queue, size }))
}
