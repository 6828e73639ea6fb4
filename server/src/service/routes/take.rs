use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use delayline_http::{Delivered, Options, Problem, named};
use delayline_tokio::{QueueName, Span};

use super::options::Said;
use super::sender::Sender;
use crate::service::app::Shared;
use crate::service::body::Empty;
use crate::service::peers::{Handout, TooManyTakes};
use crate::service::rejection::Rejection;
use crate::service::tokens::Caller;

const QUEUES_MAX: usize = 64;
/// How long a lease lasts if nothing is said.
pub(super) const LEASE: Span = Span(30_000);
/// How long a lease may last.
pub(super) const LEASES: std::ops::RangeInclusive<Span> = Span(1_000)..=Span(86_400_000);

/// Hands out jobs. Whoever disconnects drops this future, and with it what it was to be given, or else leaves an answer that
/// is not written: that costs a job nothing.
pub(super) async fn take(
    State(app): State<Shared>,
    caller: Caller,
    Said(mut options): Said,
    Sender(context): Sender,
    _: Empty,
) -> Result<Response, Rejection> {
    let queues = queues(&mut options)?;
    queues.iter().try_for_each(|queue| caller.must_reach(queue))?;
    let count = options.in_range("count", 1..=256)?.unwrap_or(1);
    let wait = options.in_range("wait", Span(0)..=Span(300_000))?.unwrap_or_default();
    let lease = options.in_range("lease", LEASES)?.unwrap_or(LEASE);
    options.finish()?;
    let _waiting = match wait.0 {
        0 => None,
        _ => Some((
            context.client.map(|client| app.peers.waits(client)).transpose().map_err(too_many)?,
            caller.waits()?,
        )),
    };
    let taking = app.client.take(queues).count(count);
    let taking = taking.wait(Duration::from_millis(wait.0)).lease(Duration::from_millis(lease.0));
    let jobs = tokio::select! { biased;
        () = context.peer.gone() => Vec::new(),
        jobs = taking.into_future() => jobs?,
        () = app.closing() => Vec::new(),
    };
    if jobs.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let leases = jobs.iter().map(|job| job.lease.clone()).collect();
    let handout = Handout::new(app.client.clone(), leases);
    let written = serde_json::to_vec(&jobs.into_iter().collect::<Delivered>()).map_err(Problem::broken)?;
    let body = context.peer.body_of(written.into(), handout);
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn too_many(TooManyTakes { most }: TooManyTakes) -> Problem {
    let detail = format!(
        "{most} takes of this address wait already, and more may not: take more jobs at once, or raise \
         --max-takes-per-client; a proxy is named by --trusted-proxy"
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
