use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use delayline_http::{Options, Problem, Taken, named};
use delayline_tokio::{QueueName, Span};
use serde::Serialize;

use super::options::Said;
use super::sender::Sender;
use crate::app::Shared;
use crate::body::Empty;
use crate::peers::{Handout, TooManyTakes};
use crate::rejection::Rejection;

const QUEUES_MAX: usize = 64;
/// How long a lease lasts if nothing is said.
pub(super) const LEASE: Span = Span(30_000);
/// How long a lease may last.
pub(super) const LEASES: std::ops::RangeInclusive<Span> = Span(1_000)..=Span(86_400_000);

#[derive(Serialize)]
struct Jobs {
    jobs: Vec<Taken>,
}

/// Hands out jobs. Whoever disconnects drops this future, and with it what it was to be given, or else leaves an answer that
/// is not written: that costs a job nothing.
pub(super) async fn take(
    State(app): State<Shared>,
    Said(mut options): Said,
    Sender(peer): Sender,
    _: Empty,
) -> Result<Response, Rejection> {
    let queues = queues(&mut options)?;
    let count = options.in_range("count", 1..=256)?.unwrap_or(1);
    let wait = options.in_range("wait", Span(0)..=Span(300_000))?.unwrap_or_default();
    let lease = options.in_range("lease", LEASES)?.unwrap_or(LEASE);
    options.finish()?;
    let _waiting = if wait.0 > 0 { peer.waits().map_err(too_many)? } else { None };
    let taking = app.client.take(queues).count(count);
    let taking = taking.wait(Duration::from_millis(wait.0)).lease(Duration::from_millis(lease.0));
    let jobs = tokio::select! { biased;
        () = peer.gone() => Vec::new(),
        jobs = taking.into_future() => jobs?,
        () = app.closing() => Vec::new(),
    };
    if jobs.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let leases = jobs.iter().map(|job| job.lease.clone()).collect();
    let handout = Handout::new(app.client.clone(), leases);
    let jobs = Jobs { jobs: jobs.into_iter().map(Taken::from).collect() };
    let written = serde_json::to_vec(&jobs).map_err(Problem::broken)?;
    let body = peer.body_of(written.into(), handout);
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn too_many(TooManyTakes { most }: TooManyTakes) -> Problem {
    let detail = format!(
        "{most} takes of this address wait already, and more may not: take more jobs at once, or raise \
         --max-takes-per-client, as where a proxy makes all clients one"
    );
    Problem::new(429, "too_many_takes", detail).retry_after(1)
}

fn queues(options: &mut Options) -> Result<Vec<QueueName>, Problem> {
    let names: Vec<String> = options.all("queue")?;
    let mut queues: Vec<QueueName> = Vec::with_capacity(names.len());
    for name in &names {
        let queue = named(name)?;
        if !queues.contains(&queue) {
            queues.push(queue);
        }
    }
    match queues.len() {
        0 => Err(Problem::bad("bad_option", "no queue is named: add ?queue=NAME, once for each queue")),
        1..=QUEUES_MAX => Ok(queues),
        more => {
            let detail = format!("{more} queues are named, and at most {QUEUES_MAX} can be: take from fewer");
            Err(Problem::bad("bad_option", detail))
        }
    }
}
