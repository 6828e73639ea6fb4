use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delayline_core::{Lease, Reason, SettleOutcome, Verdict};
use delayline_tokio::{CancelOutcome, Client, Delivery, Error, ExtendOutcome, Queue, RescheduleOutcome};
use serde_json::Value;

use super::history::{Answer, End};
use super::plan::LEASE;
use super::request::{Outcome, request};
use super::worker::{BURIED, Order, failed};

const TAKE: u16 = 5;
const WAIT: Duration = Duration::from_secs(1);

/// Where the service listens now, if it does.
pub(super) type Whereabouts = Arc<Mutex<Option<SocketAddr>>>;

/// A way into the queues.
#[derive(Clone)]
pub(super) enum Door {
    /// The library, over a link of its own.
    Library(Client),
    /// The service.
    Http(Whereabouts),
}

/// A job to be published.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) queue: String,
    pub(super) id: String,
    pub(super) delay: u64,
    pub(super) attempts: u16,
    pub(super) backoff: u64,
    pub(super) ttl: Option<u64>,
    pub(super) order: Order,
}

/// A job that was taken.
pub(super) struct Taken {
    pub(super) lease: Lease,
    pub(super) attempt: u16,
    pub(super) due: u64,
    pub(super) ends: u64,
    pub(super) published: u64,
    pub(super) order: Order,
}

/// An answer, or one that there should not be.
pub(super) type Told = Result<Answer, String>;

impl Door {
    pub(super) async fn publish(&self, draft: &Draft) -> Told {
        match self {
            Door::Library(client) => publish(&bytes(client, &draft.queue), draft).await,
            Door::Http(service) => {
                let Draft { queue, id, delay, attempts, backoff, ttl, order } = draft;
                let mut path = format!(
                    "/v1/queues/{queue}/jobs?id={id}&delay={delay}ms&attempts={attempts}&backoff=fixed%20{backoff}ms"
                );
                if let Some(ttl) = ttl {
                    let _ = write!(path, "&ttl={ttl}ms");
                }
                let body = serde_json::to_string(order).expect("an order is JSON");
                told(service, "POST", &path, &body, "due").await
            }
        }
    }

    pub(super) async fn cancel(&self, queue: &str, id: &str) -> Told {
        match self {
            Door::Library(client) => match bytes(client, queue).cancel(id).await {
                Ok(CancelOutcome::Cancelled) => Ok(Answer::Done(0)),
                Ok(_) => Ok(Answer::Missed),
                Err(error) => fault(&error),
            },
            Door::Http(service) => {
                told(service, "DELETE", &format!("/v1/queues/{queue}/jobs/{id}"), "", "").await
            }
        }
    }

    pub(super) async fn reschedule(&self, queue: &str, id: &str, delay: u64) -> Told {
        match self {
            Door::Library(client) => {
                let moved = bytes(client, queue).reschedule(id, Duration::from_millis(delay)).await;
                match moved.map(|moved| (moved.outcome, moved.due)) {
                    Ok((RescheduleOutcome::Moved, due)) => Ok(Answer::Done(due.map_or(0, |due| due.0))),
                    Ok(_) => Ok(Answer::Missed),
                    Err(error) => fault(&error),
                }
            }
            Door::Http(service) => {
                let (path, body) =
                    (format!("/v1/queues/{queue}/jobs/{id}"), format!("{{\"delay\":\"{delay}ms\"}}"));
                told(service, "PATCH", &path, &body, "due").await
            }
        }
    }

    pub(super) async fn take(&self, queue: &str) -> Result<Vec<Taken>, String> {
        match self {
            Door::Library(client) => {
                let taking = bytes(client, queue).take().count(TAKE).wait(WAIT);
                match taking.lease(Duration::from_millis(LEASE)).await {
                    Ok(jobs) => Ok(jobs.into_iter().map(Taken::from).collect()),
                    Err(error) => fault(&error).map(|_| Vec::new()),
                }
            }
            Door::Http(service) => {
                let path = format!("/v1/take?queue={queue}&count={TAKE}&wait=1s&lease={LEASE}ms");
                let Some(address) = address(service) else { return Ok(Vec::new()) };
                match request(address, "POST", &path, "").await {
                    Outcome::Answered(response) if response.status == 200 => {
                        let jobs = json(&response.body)["jobs"].as_array().cloned().unwrap_or_default();
                        Ok(jobs.iter().filter_map(Taken::read).collect())
                    }
                    Outcome::Answered(response) if response.status != 204 => {
                        problem(response.status, &response.body).map(|_| Vec::new())
                    }
                    _ => Ok(Vec::new()),
                }
            }
        }
    }

    pub(super) async fn settle(&self, lease: &Lease, end: End, attempt: u16) -> Told {
        match self {
            Door::Library(client) => match client.settle(lease.clone(), verdict(end, attempt, lease)).await {
                Ok(SettleOutcome::Stale | SettleOutcome::Gone | SettleOutcome::Conflict(_)) => {
                    Ok(Answer::Missed)
                }
                Ok(_) => Ok(Answer::Done(0)),
                Err(error) => fault(&error),
            },
            Door::Http(service) => {
                let verb = match end {
                    End::Done | End::Dropped => "ack".to_string(),
                    End::Failed => format!("nack?reason={}", failed(attempt).replace(' ', "%20")),
                    End::Buried => format!("bury?reason={}", BURIED.replace(' ', "%20")),
                    End::Snoozed(ms) => format!("snooze?delay={ms}ms"),
                };
                told(service, "POST", &format!("/v1/leases/{lease}/{verb}"), "", "").await
            }
        }
    }

    pub(super) async fn extend(&self, lease: &Lease) -> Told {
        match self {
            Door::Library(client) => {
                let extended = client.extend(lease.clone(), Duration::from_millis(LEASE)).await;
                match extended.map(|extended| (extended.outcome, extended.ends.0)) {
                    Ok((ExtendOutcome::Extended, ends)) => Ok(Answer::Done(ends)),
                    Ok(_) => Ok(Answer::Missed),
                    Err(error) => fault(&error),
                }
            }
            Door::Http(service) => {
                let path = format!("/v1/leases/{lease}/extend?lease={LEASE}ms");
                told(service, "POST", &path, "", "lease_ends").await
            }
        }
    }
}

impl Taken {
    fn read(job: &Value) -> Option<Taken> {
        Some(Taken {
            lease: job["lease"].as_str()?.parse().ok()?,
            attempt: u16::try_from(job["attempt"].as_u64()?).ok()?,
            due: millis(&job["due"])?,
            ends: millis(&job["lease_ends"])?,
            published: millis(&job["published"])?,
            order: serde_json::from_value(job["payload"].clone()).ok()?,
        })
    }
}

impl From<Delivery> for Taken {
    fn from(job: Delivery) -> Taken {
        Taken {
            attempt: job.attempt,
            due: job.due.0,
            ends: job.lease_ends.0,
            published: job.published.0,
            order: serde_json::from_slice(&job.body).expect("an order"),
            lease: job.lease,
        }
    }
}

fn bytes(client: &Client, queue: &str) -> Queue {
    client.bytes(queue).expect("a queue's name")
}

async fn publish(queue: &Queue, draft: &Draft) -> Told {
    let body = serde_json::to_vec(&draft.order).expect("an order is JSON");
    let backoff = format!("fixed {}ms", draft.backoff).parse().expect("a backoff");
    let publish = queue.publish_bytes(body).content_type("application/json").id(draft.id.as_str());
    let mut publish =
        publish.delay(Duration::from_millis(draft.delay)).attempts(draft.attempts).backoff(backoff);
    if let Some(ttl) = draft.ttl {
        publish = publish.ttl(Duration::from_millis(ttl));
    }
    match publish.await {
        Ok(published) => Ok(published.due.map_or(Answer::Duplicate, |due| Answer::Done(due.0))),
        Err(error) => fault(&error),
    }
}

fn verdict(end: End, attempt: u16, lease: &Lease) -> Verdict {
    match end {
        End::Done | End::Dropped => Verdict::Ack,
        End::Failed => {
            Verdict::Nack { after_ms: Some(lease.retry_ms), reason: Reason::new(&failed(attempt)) }
        }
        End::Buried => Verdict::Bury { reason: Reason::new(BURIED) },
        End::Snoozed(ms) => Verdict::Snooze { after_ms: ms },
    }
}

fn fault(error: &Error) -> Told {
    match error {
        Error::NotSent { .. } | Error::Busy | Error::Closed | Error::QueueFull { .. } => Ok(Answer::NotDone),
        Error::Unknown { .. } => Ok(Answer::Unknown),
        other => Err(format!("the library says {other:?}")),
    }
}

/// Asks the service for something, and reads the time of that name in what it answers.
async fn told(service: &Whereabouts, method: &str, path: &str, body: &str, time: &str) -> Told {
    let Some(address) = address(service) else { return Ok(Answer::NotDone) };
    match request(address, method, path, body).await {
        Outcome::Unsent => Ok(Answer::NotDone),
        Outcome::Unanswered => Ok(Answer::Unknown),
        Outcome::Answered(response) if response.status < 300 => {
            Ok(Answer::Done(millis(&json(&response.body)[time]).unwrap_or(0)))
        }
        Outcome::Answered(response) => problem(response.status, &response.body),
    }
}

fn problem(status: u16, body: &str) -> Told {
    let problem = json(body);
    match (status, problem["code"].as_str().unwrap_or_default()) {
        (_, "duplicate") => Ok(Answer::Duplicate),
        (404, "no_such_job") | (409, "leased" | "dead" | "stale" | "expires") | (410, "gone") => {
            Ok(Answer::Missed)
        }
        (503, "not_sent" | "busy" | "shutting_down" | "refused") => Ok(Answer::NotDone),
        (503 | 504, "unknown") => Ok(Answer::Unknown),
        _ => Err(format!("the service says {status} {body}")),
    }
}

fn address(service: &Whereabouts) -> Option<SocketAddr> {
    *service.lock().unwrap_or_else(PoisonError::into_inner)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn millis(value: &Value) -> Option<u64> {
    let time: jiff::Timestamp = value.as_str()?.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}
