use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use delayline_tokio::{Client, Delivery, Error, Lease, QueueName, UnixMs};
use futures_util::future::join_all;
use tokio::time::Instant;

use super::answer::{JSON, Refusal, compact};
use super::job_object::JobObject;
use super::query::Query;
use super::stored::{self, Expires};
use super::target::Target;
use super::{Lmstfy, Shared};
use crate::service::peers::{Handout, Peer, TooManyTakes};
use crate::service::request_context::RequestContext;

const COUNT_MAX: u32 = 100;
const TTR_SECONDS: u32 = 120;
/// The shortest and the longest lease.
const TTRS: std::ops::RangeInclusive<u32> = 1..=86_400;
/// The longest wait of a request, and of what it asks the engine for.
const WAIT_MAX: Duration = Duration::from_secs(600);
const TAKE_WAIT_MAX: Duration = Duration::from_secs(300);

/// What is to be handed out.
struct Wanted {
    queues: Vec<QueueName>,
    count: u16,
    ttr: Duration,
    wait: Duration,
}

impl Wanted {
    fn read(target: &Target, query: &Query) -> Result<Wanted, Refusal> {
        let ttr: u32 = query.unsigned("ttr", TTR_SECONDS, "invalid ttr")?;
        let timeout: u32 = query.unsigned("timeout", 0, "invalid timeout")?;
        let count: u32 = query.unsigned("count", 1, "invalid count")?;
        let count = u16::try_from(count).ok().filter(|_| (1..=COUNT_MAX).contains(&count));
        let count = count.ok_or_else(|| Refusal::bad("invalid count"))?;
        Ok(Wanted {
            queues: target.queues()?,
            count,
            ttr: Duration::from_secs(ttr.clamp(*TTRS.start(), *TTRS.end()).into()),
            wait: Duration::from_secs(timeout.into()).min(WAIT_MAX),
        })
    }
}

/// Hands out jobs. A client that leaves drops this future, and with it what it was to be given, or else leaves an answer
/// that is not written: neither costs the job a try.
pub(super) async fn consume(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let wanted = Wanted::read(&target, &Query::of(parts.uri.query()))?;
    let RequestContext { peer, client, .. } = &**RequestContext::of(&parts.extensions);
    let waits = || client.map(|client| lmstfy.app.peers.waits(client)).transpose().map_err(too_many);
    let _waiting = match (wanted.wait.is_zero(), &target.caller) {
        (true, _) => None,
        (false, None) => Some((waits()?, None)),
        (false, Some(caller)) => Some((waits()?, caller.waits()?)),
    };
    let (jobs, handout) = taken(&lmstfy, peer, &wanted).await?;
    if jobs.is_empty() {
        return Err(Refusal::message(StatusCode::NOT_FOUND, "no job available"));
    }
    let expiries = join_all(jobs.iter().map(|job| expires(&lmstfy.app.client, job))).await;
    let objects = jobs.iter().zip(expiries);
    let objects: Vec<JobObject> = objects.map(|(job, expires)| JobObject::delivered(job, expires)).collect();
    let written = match &objects[..] {
        [only] if wanted.count == 1 => compact(only),
        several => compact(&several),
    };
    let body = peer.body_of(written.into(), handout);
    Ok(([(header::CONTENT_TYPE, JSON)], body).into_response())
}

/// The jobs, and what gives them back should they not be handed out.
async fn taken(
    lmstfy: &Lmstfy,
    peer: &Arc<Peer>,
    wanted: &Wanted,
) -> Result<(Vec<Delivery>, Handout), Refusal> {
    let client = &lmstfy.app.client;
    let mut jobs = tokio::select! { biased;
        () = peer.gone() => Vec::new(),
        jobs = first(client, wanted) => jobs?,
        () = lmstfy.app.closing() => Vec::new(),
    };
    let mut handout = Handout::new(client.clone(), leases(&jobs));
    // lmstfy goes on in the next queues until it has as many as were asked for.
    let mut rest: &[QueueName] = following(&wanted.queues, &jobs);
    while !rest.is_empty() && jobs.len() < usize::from(wanted.count) {
        let missing = wanted.count - u16::try_from(jobs.len()).unwrap_or(wanted.count);
        let Ok(more) = client.take(rest.iter().cloned()).count(missing).lease(wanted.ttr).await else {
            break;
        };
        handout.also(leases(&more));
        rest = following(rest, &more);
        jobs.extend(more);
    }
    Ok((jobs, handout))
}

/// The first jobs, waited for no longer than may be; the engine waits for a part of it at a time.
async fn first(client: &Client, wanted: &Wanted) -> Result<Vec<Delivery>, Error> {
    let deadline = Instant::now() + wanted.wait;
    loop {
        let wait = deadline.saturating_duration_since(Instant::now()).min(TAKE_WAIT_MAX);
        let taking = client.take(wanted.queues.iter().cloned()).count(wanted.count);
        let jobs = taking.lease(wanted.ttr).wait(wait).await?;
        if !jobs.is_empty() || Instant::now() >= deadline {
            return Ok(jobs);
        }
    }
}

fn leases(jobs: &[Delivery]) -> Vec<Lease> {
    jobs.iter().map(|job| job.lease.clone()).collect()
}

/// The queues that stand behind the one that the jobs are of; none if there are no jobs.
fn following<'a>(queues: &'a [QueueName], jobs: &[Delivery]) -> &'a [QueueName] {
    let Some(job) = jobs.first() else { return &[] };
    let at = queues.iter().position(|queue| *queue == job.lease.queue);
    at.and_then(|at| queues.get(at + 1..)).unwrap_or_default()
}

/// When a job expires. One that was not published by this API is looked at for that.
async fn expires(client: &Client, job: &Delivery) -> Option<UnixMs> {
    match stored::expires(&job.headers, job.published) {
        Expires::At(at) => return Some(at),
        Expires::Never => return None,
        Expires::Unsaid => {}
    }
    let found = client.bytes(&job.lease.queue).ok()?.inspect(&job.lease.id).await;
    found.ok()??.expires
}

fn too_many(TooManyTakes { most }: TooManyTakes) -> Refusal {
    let text = format!("{most} consumers of this address wait already, please retry later");
    Refusal::message(StatusCode::TOO_MANY_REQUESTS, text)
}
