use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use delayline_core::{Backoff, Contents, Inspected, Job, Place, QueueName, Trace};
use serde::Serialize;
use thiserror::Error;

use crate::payload::Payload;
use crate::{Time, Written};

/// A delivered job as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DeliveredJob))]
pub struct Taken {
    /// The id of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Id))]
    id: String,
    /// The queue of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Name))]
    queue: String,
    /// What to settle or extend the delivery by.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::LeaseText))]
    lease: String,
    /// When the lease ends unless it is extended.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Moment))]
    lease_ends: Time,
    /// Which attempt this is, from 1.
    attempt: u16,
    /// The most attempts.
    max_attempts: u16,
    /// When the job was due.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Moment))]
    due: Time,
    /// When the job was published, by the clock of the service.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Moment))]
    published: Time,
    /// What else the publisher said, by name in lower case.
    headers: BTreeMap<String, String>,
    /// The media type of the payload, if the publisher said one.
    #[cfg_attr(feature = "openapi", schema(required))]
    content_type: Option<String>,
    #[serde(flatten)]
    trace: Context,
    #[serde(flatten)]
    payload: Payload,
}

/// Where the publishing of a job stands in a distributed trace, as the headers that said so.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = TraceContext))]
struct Context {
    /// The header `traceparent` of the request that published the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    /// The header `tracestate` of that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

impl From<Option<Trace>> for Context {
    fn from(trace: Option<Trace>) -> Context {
        let Some(trace) = trace else { return Context::default() };
        let traceparent = Some(trace.to_string());
        Context { traceparent, tracestate: Some(trace.state).filter(|state| !state.is_empty()) }
    }
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
            trace: job.trace.into(),
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Job))]
pub struct Kept {
    /// The id of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Id))]
    id: String,
    /// The queue of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Name))]
    queue: String,
    /// Where the job is.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::StateText))]
    state: &'static str,
    /// When it is or was due, if that is known.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<crate::openapi::text::Moment>))]
    due: Option<Time>,
    /// When its lease ends, if it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Moment>))]
    lease_ends: Option<Time>,
    /// When it died, if it is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Moment>))]
    died: Option<Time>,
    /// When it expires, if it does; shown of one job, not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Moment>))]
    expires: Option<Time>,
    /// The attempts spent, the current one included.
    attempt: u16,
    /// The most attempts, once they are known; `null` leaves them to the queue.
    #[cfg_attr(feature = "openapi", schema(required))]
    max_attempts: Option<u16>,
    /// How often it was delivered; snoozes and releases count here only.
    deliveries: u16,
    /// Why the last attempt failed, or why it died.
    #[cfg_attr(feature = "openapi", schema(required))]
    reason: Option<String>,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Described))]
    contents: Option<Described>,
    /// Why there are no contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
}

/// What the publisher of a job said; left out of a job that cannot be read.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = JobContents))]
struct Described {
    /// When the job was published, by the clock of the service.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = crate::openapi::text::Moment))]
    published: Time,
    /// What else the publisher said, by name in lower case.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    headers: BTreeMap<String, String>,
    /// The media type of the payload, if the publisher said one.
    content_type: Option<String>,
    /// The delay before another attempt, if the job has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::BackoffText>))]
    backoff: Option<Written<Backoff>>,
    #[serde(flatten)]
    trace: Context,
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
            trace: contents.trace.into(),
        }
    }
}

/// Delivered jobs as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DeliveredJobs))]
pub struct Delivered {
    /// At least one, all of the same queue.
    jobs: Vec<Taken>,
}

impl FromIterator<Job> for Delivered {
    fn from_iter<I: IntoIterator<Item = Job>>(jobs: I) -> Delivered {
        Delivered { jobs: jobs.into_iter().map(Taken::from).collect() }
    }
}

/// A page of the jobs of a queue as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobPage {
    /// The jobs, in order.
    jobs: Vec<Kept>,
    /// What to pass as `cursor` for the next page; `null` on the last.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<crate::openapi::text::CursorText>))]
    cursor: Option<String>,
}

impl JobPage {
    /// The page, and what the next begins with if there is one.
    pub fn new(
        queue: &QueueName,
        jobs: impl IntoIterator<Item = Inspected>,
        next: Option<&impl Display>,
    ) -> JobPage {
        let jobs = jobs.into_iter().map(|job| Kept::new(queue, job)).collect();
        JobPage { jobs, cursor: next.map(ToString::to_string) }
    }
}

/// The state of a job, as a query names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobState(pub Place);

/// A text that names no state of a job.
#[derive(Debug, Error)]
#[error("{0:?} is no state of a job: use ready, delayed, leased or dead")]
pub struct JobStateError(String);

impl FromStr for JobState {
    type Err = JobStateError;

    fn from_str(text: &str) -> Result<JobState, JobStateError> {
        let mut places = [Place::Ready, Place::Delayed, Place::Leased, Place::Dead].into_iter();
        let found = places.find(|place| state(*place) == text);
        found.map(JobState).ok_or_else(|| JobStateError(text.chars().take(80).collect()))
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
