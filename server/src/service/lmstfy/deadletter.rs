use std::time::Duration;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use delayline_tokio::{Error, Inspected, JobId, Queue};
use serde::Serialize;

use super::Shared;
use super::answer::{Refusal, json};
use super::peek::Count;
use super::query::Query;
use super::stored::{self, Expires, NewJob};
use super::target::Target;

/// How many dead letters are read, and moved, at once.
const PAGE: u64 = 100;
const TTL_SECONDS: i64 = 86_400;

/// What becomes of dead letters.
enum Move {
    Respawn {
        /// In seconds; 0 is for ever.
        ttl: u64,
    },
    Delete,
}

#[derive(Serialize)]
struct Peeked<'a> {
    deadletter_head: String,
    deadletter_size: u64,
    namespace: &'a str,
    queue: &'a str,
}

#[derive(Serialize)]
struct Respawned {
    count: u64,
    msg: &'static str,
}

/// How many dead letters there are, and the id of the one that died first.
pub(super) async fn peek(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
) -> Result<Response, Refusal> {
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    let dead = queue.stats(0).await?.dead;
    let head = queue.dead_letters(1, None).await?.items.first().map(|job| job.id.to_string());
    Ok(json(
        StatusCode::OK,
        &Peeked {
            deadletter_size: if head.is_some() { dead } else { 0 },
            deadletter_head: head.unwrap_or_default(),
            namespace: target.namespace.as_str(),
            queue: target.own(),
        },
    ))
}

/// How many dead letters there are.
pub(super) async fn size(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
) -> Result<Response, Refusal> {
    let size = lmstfy.app.client.bytes(target.queue()?)?.stats(0).await?.dead;
    let (namespace, queue) = (target.namespace.as_str(), target.own());
    Ok(json(StatusCode::OK, &Count { namespace, queue, size }))
}

/// Makes the first dead letters ready for one more try.
pub(super) async fn respawn(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = Query::of(query.as_deref());
    let limit = query.at_least("limit", 1, 1, "invalid limit")?;
    let ttl = query.at_least("ttl", 0, TTL_SECONDS, "invalid ttl")?;
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    let count = move_first(&queue, limit, &Move::Respawn { ttl }).await?;
    Ok(json(StatusCode::OK, &Respawned { count, msg: "respawned" }))
}

/// Removes the first dead letters.
pub(super) async fn delete(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Refusal> {
    let limit = Query::of(query.as_deref()).at_least("limit", 1, 1, "invalid limit")?;
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    move_first(&queue, limit, &Move::Delete).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn ids(jobs: &[Inspected]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id.clone()).collect()
}

/// Moves the first dead letters, a page at a time, and answers how many moved. Jobs that die meanwhile are not meant.
async fn move_first(queue: &Queue, limit: u64, how: &Move) -> Result<u64, Error> {
    let mut left = limit.min(queue.stats(0).await?.dead);
    let mut moved = 0;
    while left > 0 {
        let page = u16::try_from(left.min(PAGE)).unwrap_or(u16::MAX);
        let jobs = queue.dead_letters(page, None).await?.items;
        if jobs.is_empty() {
            break;
        }
        left = left.saturating_sub(jobs.len() as u64);
        moved += match how {
            Move::Respawn { ttl } => respawn_all(queue, jobs, *ttl).await?,
            Move::Delete => queue.purge(ids(&jobs)).await?.moved,
        };
    }
    Ok(moved)
}

/// Makes dead letters ready, then has a job of one try take the place of each: between the two steps it is ready with all its
/// tries, so that no crash loses it. One that a consumer gets in between keeps them.
async fn respawn_all(queue: &Queue, jobs: Vec<Inspected>, ttl: u64) -> Result<u64, Error> {
    let moved = queue.requeue(ids(&jobs)).await?;
    let requeued = jobs.into_iter().zip(moved.outcomes).filter(|(_, is_moved)| *is_moved);
    let published = requeued.filter_map(|(job, _)| one_more_try(job, ttl));
    let published = published.map(|job| job.publish(queue).replace());
    for outcome in queue.publish_all(published.collect::<Vec<_>>()).await {
        match outcome {
            // A queue that is full still has the job that was to be replaced.
            Ok(_) | Err(Error::QueueFull { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(moved.moved)
}

/// The job that is to take the place of a requeued one; none if that has one try and no TTL anyway.
fn one_more_try(job: Inspected, ttl: u64) -> Option<NewJob> {
    let contents = job.contents.ok()?;
    let says_ttl = matches!(stored::expires(&contents.headers, contents.published), Expires::At(_));
    if contents.attempts == Some(1) && ttl == 0 && !says_ttl {
        return None;
    }
    Some(NewJob {
        id: job.id,
        body: contents.body,
        headers: stored::without_ttl(contents.headers),
        content_type: contents.content_type,
        delay: Duration::ZERO,
        ttl,
        tries: 1,
    })
}
