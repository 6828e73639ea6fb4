use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use delayline_core::DELAY_MAX_MS;
use delayline_http::items;
use delayline_tokio::{Error, JobId, Published, Queue};
use serde::Serialize;

use super::answer::{Refusal, json};
use super::attributes::{self, Attributes};
use super::query::Query;
use super::stored::{self, NewJob};
use super::target::Target;
use super::{Lmstfy, Shared, remove};
use crate::service::body::Inbound;

/// The largest body of a job, and the most jobs of one request.
const JOB_BYTES: usize = 1 << 20;
const JOBS: usize = 64;
/// What surrounds the jobs of one request: commas, brackets, spaces.
const AROUND_BYTES: usize = 64 << 10;
const TTL_SECONDS: u32 = 86_400;

#[derive(Serialize)]
struct One {
    job_id: String,
    msg: &'static str,
}

#[derive(Serialize)]
struct Many {
    job_ids: Vec<String>,
    msg: &'static str,
}

/// What a query says of the jobs in the body.
struct Terms {
    delay: Duration,
    ttl: u64,
    tries: u16,
}

impl Terms {
    fn read(query: &Query) -> Result<Terms, Refusal> {
        let delay: u32 = query.unsigned("delay", 0, "invalid delay")?;
        let ttl: u32 = query.unsigned("ttl", TTL_SECONDS, "invalid ttl")?;
        if ttl > 0 && ttl < delay {
            return Err(Refusal::bad("ttl is shorter than delay"));
        }
        let tries: u16 = query.unsigned("tries", 1, "invalid tries")?;
        if tries == 0 {
            return Err(Refusal::bad("tries shouldn't be zero"));
        }
        let delay = Duration::from_secs(delay.into());
        if delay > Duration::from_millis(DELAY_MAX_MS) {
            return Err(Refusal::bad("invalid delay"));
        }
        Ok(Terms { delay, ttl: ttl.into(), tries })
    }

    fn job(&self, lmstfy: &Lmstfy, body: Bytes, attributes: &Attributes) -> Result<NewJob, Refusal> {
        let Terms { delay, ttl, tries } = *self;
        let (id, headers) = (lmstfy.draw_id()?, stored::headers(attributes));
        Ok(NewJob { id, body, headers, content_type: None, delay, ttl, tries })
    }
}

impl Lmstfy {
    fn draw_id(&self) -> Result<JobId, Refusal> {
        self.ulids.draw().to_string().parse().map_err(|error| Refusal::internal("bad_id", error))
    }

    /// The largest body of a job.
    fn job_bytes(&self) -> usize {
        JOB_BYTES.min(self.app.max_payload.bytes)
    }
}

/// Publishes the body as a job.
pub(super) async fn one(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
    request: Request,
) -> Result<Response, Refusal> {
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    let id = publish(&lmstfy, &queue, request).await?;
    Ok(json(StatusCode::CREATED, &One { job_id: id, msg: "published" }))
}

/// Publishes the body as a job, then takes another away: between the two there are both, never none.
pub(super) async fn again(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
    request: Request,
) -> Result<Response, Refusal> {
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    let id = publish(&lmstfy, &queue, request).await?;
    if let Err(error) = remove::remove(&lmstfy.app.client, &queue, &target.job).await {
        // A refusal would have the client publish a third job.
        tracing::warn!(queue = %queue.name(), %error, "a job was published in place of one that stays");
    }
    Ok(json(StatusCode::CREATED, &One { job_id: id, msg: "published" }))
}

/// Publishes the body of a request, and answers the id of the job. Only a known outcome is a success.
async fn publish(lmstfy: &Lmstfy, queue: &Queue, request: Request) -> Result<String, Refusal> {
    let (headers, query, body) = taken_apart(lmstfy, request);
    let terms = Terms::read(&query)?;
    let body = body.whole(lmstfy.job_bytes()).await;
    let body = body.map_err(|unread| Refusal::unread(unread, "body too large"))?;
    let job = terms.job(lmstfy, body, &attributes::read(&headers)?)?;
    lmstfy.app.namespaces.admit(queue.name(), 1, job.body.len() as u64).await?;
    let id = job.id.to_string();
    job.publish(queue).await?;
    Ok(id)
}

/// Publishes each element of an array, as its JSON text stands there.
pub(super) async fn bulk(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
    request: Request,
) -> Result<Response, Refusal> {
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    let (headers, query, body) = taken_apart(&lmstfy, request);
    let terms = Terms::read(&query)?;
    let body = body.whole(JOBS * lmstfy.job_bytes() + AROUND_BYTES).await;
    let body = body.map_err(|unread| Refusal::unread(unread, "body too large"))?;
    let bodies = elements(&body)?;
    if bodies.iter().any(|job| job.len() > lmstfy.job_bytes()) {
        return Err(Refusal::error(StatusCode::PAYLOAD_TOO_LARGE, "job too large"));
    }
    let attributes = attributes::read(&headers)?;
    let jobs = bodies.into_iter().map(|body| terms.job(&lmstfy, body, &attributes));
    let jobs: Vec<NewJob> = jobs.collect::<Result<_, _>>()?;
    let bytes = jobs.iter().map(|job| job.body.len() as u64).sum();
    lmstfy.app.namespaces.admit(queue.name(), jobs.len() as u64, bytes).await?;
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    let published = queue.publish_all(jobs.into_iter().map(|job| job.publish(&queue))).await;
    all_or_none(&queue, &ids, published).await?;
    let job_ids = ids.iter().map(ToString::to_string).collect();
    Ok(json(StatusCode::CREATED, &Many { job_ids, msg: "published" }))
}

fn taken_apart(lmstfy: &Lmstfy, request: Request) -> (HeaderMap, Query, Inbound) {
    let (parts, body) = request.into_parts();
    let inbound = Inbound::of(&parts, body, lmstfy.app.patience);
    (parts.headers, Query::of(parts.uri.query()), inbound)
}

/// The elements of a JSON array, each as its text stands there.
fn elements(body: &Bytes) -> Result<Vec<Bytes>, Refusal> {
    let elements = match body.trim_ascii() {
        b"null" => Vec::new(),
        array => {
            items(array, |error| delayline_http::Problem::bad("bad_json", error)).map_err(|problem| {
                let is_long = problem.status == StatusCode::PAYLOAD_TOO_LARGE.as_u16();
                Refusal::bad(if is_long {
                    "too many jobs"
                } else {
                    "request body should be an array of objects"
                })
            })?
        }
    };
    match elements.len() {
        0 => Err(Refusal::bad("no jobs")),
        1..=JOBS => Ok(elements.iter().map(|element| body.slice_ref(element.get().as_bytes())).collect()),
        _ => Err(Refusal::bad("too many jobs")),
    }
}

/// Takes jobs back, as far as they still wait, unless all were accepted: the client is told of none, and publishes all again.
async fn all_or_none(
    queue: &Queue,
    ids: &[JobId],
    published: Vec<Result<Published, Error>>,
) -> Result<(), Refusal> {
    let Some(error) = published.into_iter().find_map(Result::err) else { return Ok(()) };
    let _ = queue.cancel_all(ids.to_vec()).await;
    Err(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<(u64, u64, u16), String> {
        let terms = Terms::read(&Query::of(Some(query)));
        terms
            .map(|terms| (terms.delay.as_secs(), terms.ttl, terms.tries))
            .map_err(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn terms_have_defaults_and_are_checked_in_order() {
        assert_eq!(read(""), Ok((0, 86_400, 1)));
        assert_eq!(read("delay=5&ttl=5&tries=65535"), Ok((5, 5, 65_535)));
        assert_eq!(read("delay=90000&ttl=0"), Ok((90_000, 0, 1)));
        for (query, says) in [
            ("delay=x&ttl=x&tries=x", "invalid delay"),
            ("delay=4294967296", "invalid delay"),
            ("ttl=x&tries=x", "invalid ttl"),
            ("delay=6&ttl=5&tries=x", "ttl is shorter than delay"),
            ("delay=86401", "ttl is shorter than delay"),
            ("tries=65536", "invalid tries"),
            ("tries=0", "tries shouldn't be zero"),
            ("delay=4000000000&ttl=0", "invalid delay"),
        ] {
            let refused = read(query).unwrap_err();
            assert!(refused.contains(says), "{query}: {refused}");
        }
    }

    #[test]
    fn elements_keep_their_text() {
        let read = |json: &str| {
            let elements = elements(&Bytes::copy_from_slice(json.as_bytes()));
            elements.map(|all| {
                all.iter().map(|one| String::from_utf8_lossy(one).into_owned()).collect::<Vec<_>>()
            })
        };
        assert_eq!(read(" [ {\"a\": 1} , \"s\",null,2 ]\n").unwrap(), ["{\"a\": 1}", "\"s\"", "null", "2"]);
        assert_eq!(read(&format!("[{}1]", "1,".repeat(63))).unwrap().len(), 64);
        for (json, says) in [
            ("", "should be an array"),
            ("{}", "should be an array"),
            ("[1", "should be an array"),
            ("[]", "no jobs"),
            (" null ", "no jobs"),
            (&format!("[{}1]", "1,".repeat(64)), "too many jobs"),
            (&format!("[{}1]", "1,".repeat(2_000)), "too many jobs"),
        ] {
            let refused = format!("{:?}", read(json).unwrap_err());
            assert!(refused.contains(says), "{json}: {refused}");
        }
    }
}
