use std::time::Duration;

use bytes::Bytes;
use delayline_tokio::{Backoff, JobId, Publish, Queue, Span, When};

use crate::problem::Problem;
use crate::timestamp::Time;

/// A job as a publisher describes it, over HTTP, in a batch or on the command line.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) id: Option<JobId>,
    pub(crate) replace: bool,
    pub(crate) when: Option<When>,
    pub(crate) attempts: Option<u16>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) ttl: Option<Span>,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// When a job is to be due, if that is said.
pub(crate) fn when(delay: Option<Span>, at: Option<Time>) -> Result<Option<When>, Problem> {
    match (delay, at) {
        (Some(_), Some(_)) => Err(Problem::bad("bad_due", "delay and at exclude each other: give one")),
        (Some(delay), None) => Ok(Some(When::In(Duration::from_millis(delay.0)))),
        (None, Some(at)) => Ok(Some(When::At(at.into()))),
        (None, None) => Ok(None),
    }
}

impl Draft {
    /// The job as it is to be published; the queue checks the rest.
    pub(crate) fn publish(self, queue: &Queue) -> Publish {
        let mut publish = queue.publish(&self.body);
        if let Some(when) = self.when {
            publish = publish.when(when);
        }
        if let Some(id) = self.id {
            publish = publish.id(id);
        }
        if self.replace {
            publish = publish.replace();
        }
        if let Some(attempts) = self.attempts {
            publish = publish.attempts(attempts);
        }
        if let Some(backoff) = self.backoff {
            publish = publish.backoff(backoff);
        }
        if let Some(ttl) = self.ttl {
            publish = publish.ttl(Duration::from_millis(ttl.0));
        }
        if let Some(content_type) = self.content_type {
            publish = publish.content_type(content_type);
        }
        self.headers.into_iter().fold(publish, |publish, (name, value)| publish.header(name, value))
    }
}
