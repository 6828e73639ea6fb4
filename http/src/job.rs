use std::collections::BTreeMap;

use delayline_core::{Backoff, Contents, Inspected, Job, Place, QueueName};
use serde::Serialize;

use crate::payload::Payload;
use crate::{Time, Written};

/// A delivered job as JSON.
#[derive(Debug, Serialize)]
pub struct Taken {
    id: String,
    queue: String,
    lease: String,
    lease_ends: Time,
    attempt: u16,
    max_attempts: u16,
    due: Time,
    published: Time,
    headers: BTreeMap<String, String>,
    content_type: Option<String>,
    #[serde(flatten)]
    payload: Payload,
}

impl From<Job> for Taken {
    fn from(job: Job) -> Taken {
        Taken {
            id: job.lease.id.to_string(),
            queue: job.lease.queue.to_string(),
            lease: job.lease.to_string(),
            lease_ends: Time(job.lease_ends),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            due: Time(job.due),
            published: Time(job.published),
            headers: joined(job.headers),
            payload: Payload::new(job.content_type.as_deref(), &job.body),
            content_type: job.content_type,
        }
    }
}

/// Headers by name; what was said twice is joined as HTTP joins it.
pub fn joined(pairs: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for (name, value) in pairs {
        headers
            .entry(name)
            .and_modify(|said: &mut String| {
                said.push_str(", ");
                said.push_str(&value);
            })
            .or_insert(value);
    }
    headers
}

/// A job in its queue as JSON.
#[derive(Debug, Serialize)]
pub struct Kept {
    id: String,
    queue: String,
    state: &'static str,
    due: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_ends: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    died: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Time>,
    attempt: u16,
    max_attempts: Option<u16>,
    deliveries: u16,
    reason: Option<String>,
    #[serde(flatten)]
    contents: Option<Described>,
    /// Why there are no contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
}

#[derive(Debug, Serialize)]
struct Described {
    published: Time,
    headers: BTreeMap<String, String>,
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Written<Backoff>>,
    #[serde(flatten)]
    payload: Payload,
}

impl Kept {
    /// The job as it is in this queue.
    pub fn new(queue: &QueueName, job: Inspected) -> Kept {
        Kept {
            id: job.id.to_string(),
            queue: queue.to_string(),
            state: state(job.place),
            due: job.due().map(Time),
            lease_ends: job.lease_ends().map(Time),
            died: job.died().map(Time),
            expires: job.expires.map(Time),
            attempt: job.attempt(),
            max_attempts: job.max_attempts(),
            deliveries: job.deliveries(),
            reason: job.last_reason().map(String::from),
            unreadable: job.contents.as_ref().err().map(ToString::to_string),
            contents: job.contents.ok().map(Described::from),
        }
    }
}

impl From<Contents> for Described {
    fn from(contents: Contents) -> Described {
        Described {
            published: Time(contents.published),
            headers: joined(contents.headers),
            payload: Payload::new(contents.content_type.as_deref(), &contents.body),
            content_type: contents.content_type,
            backoff: contents.backoff.map(Written),
        }
    }
}

/// What a state is called.
pub fn state(place: Place) -> &'static str {
    match place {
        Place::Ready => "ready",
        Place::Delayed => "delayed",
        Place::Leased => "leased",
        Place::Dead => "dead",
    }
}
