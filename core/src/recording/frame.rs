use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::elided;
use crate::{
    Backoff, Config, Credit, Due, Held, Identity, JobId, Millis, NewJob, QueueName, Reply, Request, Take,
    Ticket, Token, Trace, UnixMs, Verdict, Wakeup,
};

/// One entry of a recording. Variants are only added, at the end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Frame {
    /// Who recorded: always first.
    Header { version: String, origin: UnixMs },
    /// A new engine.
    Start { config: Config, identity: Identity, now: Millis },
    /// The state of the engine.
    Checkpoint(Vec<u8>),
    /// The engine was told something.
    Input { now: Millis, input: Input },
    /// How long the record is that the publish before it made.
    Stored(u64),
    /// The digest of what was decided upon the input before.
    Decided(u32),
}

/// What changes an engine. Variants are only added, at the end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Input {
    /// Nothing is [`Credit::UNLIMITED`].
    Poll(Option<Credit>),
    Timeout,
    Replies(Ticket, Vec<Reply>),
    Loss(Ticket),
    Wakeup(Wakeup),
    Publish(Token, Handed),
    Take(Token, Take),
    Request(Token, Request),
    Settle(Held, Verdict),
    Forget(Token),
    Drain,
}

/// A [`NewJob`] without body and values of headers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Handed {
    queue: QueueName,
    id: JobId,
    generated: bool,
    replace: bool,
    due: Due,
    ttl_ms: Option<u64>,
    attempts: Option<u16>,
    backoff: Option<Backoff>,
    lost_delay_ms: Option<u64>,
    content_type: Option<String>,
    headers: Vec<(String, u64)>,
    trace: Option<Trace>,
    published: UnixMs,
    body: u64,
    timeout_ms: u64,
}

impl From<&NewJob> for Handed {
    fn from(job: &NewJob) -> Handed {
        let headers = job.headers.iter().map(|(name, value)| (name.clone(), value.len() as u64));
        Handed {
            queue: job.queue.clone(),
            id: job.id.clone(),
            generated: job.generated,
            replace: job.replace,
            due: job.due,
            ttl_ms: job.ttl_ms,
            attempts: job.attempts,
            backoff: job.backoff.clone(),
            lost_delay_ms: job.lost_delay_ms,
            content_type: job.content_type.clone(),
            headers: headers.collect(),
            trace: job.trace.clone(),
            published: job.published,
            body: job.body.len() as u64,
            timeout_ms: job.timeout_ms,
        }
    }
}

impl Input {
    /// Whether an engine can be told it: the application's promises are kept.
    pub(super) fn is_sound(&self) -> bool {
        !matches!(self, Input::Take(_, want) if want.queues.is_empty() || want.count == 0)
    }

    /// Who waits for an answer.
    pub(super) fn token(&self) -> Option<Token> {
        match self {
            Input::Publish(token, _) | Input::Take(token, _) | Input::Request(token, _) => Some(*token),
            _ => None,
        }
    }
}

impl From<&Handed> for NewJob {
    fn from(job: &Handed) -> NewJob {
        let mut left = elided::VALUES_LONGEST;
        let headers = job.headers.iter().map(|(name, len)| (name.clone(), elided::value(*len, &mut left)));
        let headers = headers.collect();
        NewJob {
            queue: job.queue.clone(),
            id: job.id.clone(),
            generated: job.generated,
            replace: job.replace,
            due: job.due,
            ttl_ms: job.ttl_ms,
            attempts: job.attempts,
            backoff: job.backoff.clone(),
            lost_delay_ms: job.lost_delay_ms,
            content_type: job.content_type.clone(),
            headers,
            trace: job.trace.clone(),
            published: job.published,
            body: elided::zeros(job.body),
            timeout_ms: job.timeout_ms,
        }
    }
}
