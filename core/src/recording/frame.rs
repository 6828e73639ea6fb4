use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::elided;
use crate::{
    Backoff, Config, Credit, Due, Edit, Held, Identity, JobId, Millis, NewJob, QueueName, Reply, Request,
    Take, Ticket, Token, Trace, UnixMs, Verdict, Wakeup,
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
    Publish(Token, #[serde(with = "Handed")] NewJob),
    Take(Token, Take),
    Request(Token, Request),
    Settle(Held, Verdict),
    Forget(Token),
    Drain,
}

/// How a job is put down: without body and values of headers, which are read as what stands in for them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "NewJob")]
struct Handed {
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
    #[serde(with = "elided::values")]
    headers: Vec<(String, String)>,
    trace: Option<Trace>,
    published: UnixMs,
    #[serde(with = "elided::length")]
    body: Bytes,
    wait_for_memory: bool,
    timeout_ms: u64,
    edit: Option<Edit>,
}

impl Input {
    /// Who waits for an answer.
    pub(super) fn token(&self) -> Option<Token> {
        match self {
            Input::Publish(token, _) | Input::Take(token, _) | Input::Request(token, _) => Some(*token),
            _ => None,
        }
    }
}
