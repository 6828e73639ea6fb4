use std::fmt::Write;

use bytes::Bytes;
use delayline_core::{Inspected, Job, JobId, NameError, QueueName, Reason, UnixMs, Verdict};
use serde::Serialize;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::QueuePush;
use crate::Time;
use crate::payload::Payload;

const DELIVERED: &str = "push-callback";
const DIED: &str = "push-failure-callback";
/// How much of an answer's body a callback carries.
pub const CALLBACK_BODY_BYTES: usize = 64 << 10;

/// A job that tells what became of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// The queue it is to be published to.
    pub queue: QueueName,
    /// Its id: the same for the same event, so that publishing it again changes nothing while it waits.
    pub id: JobId,
    /// JSON.
    pub body: Bytes,
}

/// A job names a queue for its callbacks that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallbackError {
    /// Jobs of this queue may name none.
    #[error("its header {0} is not allowed: leave it out, or set push.own_callbacks in the queue's config")]
    Off(&'static str),
    /// It is no name of a queue.
    #[error("its header {0}: {1}")]
    Name(&'static str, NameError),
    /// It is the queue of the job itself.
    #[error("its header {0} names its own queue, whose callbacks would call back for ever: name another")]
    Itself(&'static str),
}

impl From<CallbackError> for Verdict {
    fn from(error: CallbackError) -> Verdict {
        Verdict::Bury { reason: Reason::new(&format!("it cannot be pushed: {error}")) }
    }
}

/// Which queues are told of what becomes of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callbacks {
    /// Of its delivery.
    pub delivered: Option<QueueName>,
    /// Of its death.
    pub died: Option<QueueName>,
}

/// What a delivery was answered.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The status code.
    pub status: u16,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The beginning of the body.
    pub body: &'a [u8],
    /// Whether that is all of it.
    pub is_whole: bool,
}

#[derive(Serialize)]
struct Delivered<'a> {
    event: &'static str,
    queue: &'a QueueName,
    id: &'a str,
    attempt: u16,
    status: u16,
    content_type: Option<&'a str>,
    truncated: bool,
    #[serde(flatten)]
    body: Payload,
}

#[derive(Serialize)]
struct Died<'a> {
    event: &'static str,
    queue: &'a QueueName,
    id: &'a str,
    attempts: u16,
    #[serde(rename = "died")]
    at: Time,
    reason: &'a str,
}

impl QueuePush {
    /// Which queues are told of what becomes of a job with these headers.
    pub fn callbacks(
        &self,
        queue: &QueueName,
        headers: &[(String, String)],
    ) -> Result<Callbacks, CallbackError> {
        let own =
            |header: &'static str| match headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header)) {
                None => Ok(None),
                Some(_) if !self.own_callbacks => Err(CallbackError::Off(header)),
                Some((_, name)) => match name.parse() {
                    Ok(named) if named == *queue => Err(CallbackError::Itself(header)),
                    Ok(named) => Ok(Some(named)),
                    Err(error) => Err(CallbackError::Name(header, error)),
                },
            };
        Ok(Callbacks {
            delivered: own(DELIVERED)?.or_else(|| self.callback.clone()),
            died: own(DIED)?.or_else(|| self.failure_callback.clone()),
        })
    }

    /// Whether any death may have to be told of.
    pub fn tells_of_deaths(&self) -> bool {
        self.failure_callback.is_some() || self.own_callbacks
    }
}

impl Callback {
    /// Tells `queue` that a job was delivered.
    pub fn delivered(queue: QueueName, job: &Job, answered: &Answered<'_>) -> Callback {
        let body = answered.body.get(..CALLBACK_BODY_BYTES).unwrap_or(answered.body);
        let told = Delivered {
            event: "delivered",
            queue: &job.lease.queue,
            id: job.lease.id.as_str(),
            attempt: job.attempt,
            status: answered.status,
            content_type: answered.content_type,
            truncated: !answered.is_whole || body.len() < answered.body.len(),
            body: Payload::new(answered.content_type, body),
        };
        // A job may come again under its id: that it is another shows by when it was published.
        Callback::new(queue, "delivered", &job.lease.queue, &job.lease.id, job.published, &told)
    }

    /// Tells `queue` that a job of `of` has died.
    pub fn died(queue: QueueName, of: &QueueName, job: &Inspected) -> Callback {
        let told = Died {
            event: "dead",
            queue: of,
            id: job.id.as_str(),
            attempts: job.attempt(),
            at: Time(job.at),
            reason: job.last_reason().unwrap_or_default(),
        };
        Callback::new(queue, "dead", of, &job.id, job.at, &told)
    }

    fn new(
        queue: QueueName,
        event: &str,
        of: &QueueName,
        id: &JobId,
        at: UnixMs,
        told: &impl Serialize,
    ) -> Callback {
        let mut hash = Sha256::new();
        hash.update(format!("{event} {of} {id} {at}"));
        let mut text = "callback-".to_owned();
        hash.finalize().iter().take(16).for_each(|byte| {
            let _ = write!(text, "{byte:02x}");
        });
        // Letters, digits and a dash: always an id.
        let id = text.parse().unwrap_or_else(|_| id.clone());
        Callback { queue, id, body: serde_json::to_vec(told).unwrap_or_default().into() }
    }
}

#[cfg(test)]
mod tests {
    use delayline_core::{Place, State};
    use serde_json::{Value, json};

    use super::*;
    use crate::push::tests::job;

    fn answered<'a>(content_type: Option<&'a str>, body: &'a [u8]) -> Answered<'a> {
        Answered { status: 201, content_type, body, is_whole: true }
    }

    fn told(callback: &Callback) -> Value {
        serde_json::from_slice(&callback.body).unwrap()
    }

    #[test]
    fn a_delivery_is_told_with_the_answer() {
        let done: QueueName = "done".parse().unwrap();
        let of = |answered: &Answered<'_>| told(&Callback::delivered(done.clone(), &job(), answered));
        let json = of(&answered(Some("application/json"), b"{\"ok\":true}"));
        assert_eq!(
            json,
            json!({
                "event": "delivered", "queue": "orders", "id": "order:17", "attempt": 2, "status": 201,
                "content_type": "application/json", "truncated": false, "encoding": "json", "payload": { "ok": true }
            })
        );
        assert_eq!(of(&answered(None, b"\xff"))["payload"], "/w==");
        let long = vec![b'x'; CALLBACK_BODY_BYTES + 1];
        let long = of(&answered(Some("text/plain"), &long));
        assert_eq!(long["truncated"], true);
        assert_eq!(long["payload"].as_str().unwrap().len(), CALLBACK_BODY_BYTES);
        let cut = Answered { is_whole: false, ..answered(None, b"x") };
        assert_eq!(of(&cut)["truncated"], true);
    }

    #[test]
    fn the_same_event_has_the_same_id_and_another_has_another() {
        let done: QueueName = "done".parse().unwrap();
        let id = |job: &Job| Callback::delivered(done.clone(), job, &answered(None, b"")).id;
        let again = Job { attempt: 3, ..job() };
        assert_eq!(id(&job()), id(&again));
        let next = Job { published: UnixMs(job().published.0 + 1), ..job() };
        assert_ne!(id(&job()), id(&next));
        let dead = |at| Inspected {
            id: job().lease.id,
            place: Place::Dead,
            at: UnixMs(at),
            state: None::<State>,
            record: delayline_core::RecordDigest::of(b""),
            expires: None,
            contents: Err(delayline_core::RecordError::Unreadable { what: "x" }),
        };
        let died = |at| Callback::died(done.clone(), &job().lease.queue, &dead(at));
        assert_eq!(died(5).id, died(5).id);
        assert_ne!(died(5).id, died(6).id);
        assert_ne!(died(job().published.0).id, id(&job()));
        let expected = json!({
            "event": "dead", "queue": "orders", "id": "order:17", "attempts": 0,
            "died": "1970-01-01T00:00:00.005Z", "reason": ""
        });
        assert_eq!(told(&died(5)), expected);
    }

    #[test]
    fn a_job_names_its_own_queues_only_where_it_may() {
        let queue: QueueName = "orders".parse().unwrap();
        let named = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let push = |own_callbacks| QueuePush {
            callback: Some("done".parse().unwrap()),
            own_callbacks,
            ..QueuePush::default()
        };
        let delivered = |push: &QueuePush, headers: &[(String, String)]| {
            push.callbacks(&queue, headers).map(|callbacks| callbacks.delivered.map(|name| name.to_string()))
        };
        assert_eq!(delivered(&push(false), &[]), Ok(Some("done".to_owned())));
        assert_eq!(delivered(&push(true), &named("Push-Callback", "mine")), Ok(Some("mine".to_owned())));
        assert_eq!(delivered(&push(true), &named("push-failure-callback", "x")), Ok(Some("done".to_owned())));
        for (push, headers, says) in [
            (push(false), named("push-callback", "mine"), "is not allowed"),
            (push(true), named("push-callback", "a b"), "queue name \"a b\" is not valid"),
            (push(true), named("push-failure-callback", "orders"), "names its own queue"),
        ] {
            let error = push.callbacks(&queue, &headers).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
