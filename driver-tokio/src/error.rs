use std::fmt;

use delayline_core::{
    ConfigError, Fault, Forward, Full, JobId, NameError, QueueName, RecordError, Refusal, TooLarge,
};
use thiserror::Error;

use crate::{AddressError, Invalid};

/// Why something was not done, or is not known to be done.
///
/// Messages name addresses, never passwords.
/// `{:?}` is the message too, since that is what an error that `main` returns is shown by.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A queue, job or prefix has a name that cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An option has a value that cannot be used. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The body is too large. Nothing was sent.
    #[error("{}", TooLarge { bytes: *bytes, limit: *limit })]
    TooLarge {
        /// The body's length.
        bytes: usize,
        /// The client's limit.
        limit: usize,
    },
    /// The URL cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A limit of the client or worker, or a queue's config, is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A job cannot be written by its queue's codec. Nothing was sent.
    #[error("a job for queue {queue} cannot be written: {why}")]
    Encode {
        /// Which queue.
        queue: QueueName,
        /// What the codec said.
        why: String,
    },
    /// A body cannot be read by its queue's codec.
    #[error("job {id} of queue {queue} cannot be read as {expected}: {why}")]
    Decode {
        /// Which queue.
        queue: QueueName,
        /// Which job.
        id: JobId,
        /// What it was to be.
        expected: &'static str,
        /// What the codec said.
        why: String,
    },
    /// The operating system gave no randomness or no thread.
    #[error("the operating system refused {what}: {why}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        why: String,
    },
    /// Redis did not let the client in, or does not let it run scripts.
    #[error("{address} does not let this user in: {why}: check user, password and ACL")]
    Denied {
        /// Who refused.
        address: String,
        /// What it said.
        why: String,
    },
    /// Redis is there, and refuses to work, for as long as the client was to wait.
    #[error("{address}: {why}")]
    Refused {
        /// Who refused.
        address: String,
        /// Why.
        why: Refusal,
    },
    /// Redis did not answer while the client was being connected.
    #[error("{address} cannot be reached: {why}: check the address, and that Redis runs there")]
    Unreachable {
        /// Where Redis was looked for.
        address: String,
        /// The last failure.
        why: String,
    },
    /// The deployment was opened with another number of shards than asked for.
    #[error(
        "{address} was opened with {found} shards, not {wanted}: ask for {found}, or for none to use what is found, or \
         use another prefix"
    )]
    ShardsMismatch {
        /// Where.
        address: String,
        /// How many were asked for.
        wanted: u16,
        /// How many there are.
        found: u16,
    },
    /// The deployment was laid out by a newer version.
    #[error("{address} has layout {found}, and this version knows layout 1: use a newer version")]
    NewerLayout {
        /// Where.
        address: String,
        /// Its layout.
        found: u32,
    },
    /// The deployment was made before the layout was settled, by a version that was not released.
    #[error(
        "{address} has a deployment that an unreleased version made, before layout 1 was settled: this version cannot read \
         it; use another prefix, or remove its keys, which all begin with the prefix in braces"
    )]
    OlderLayout {
        /// Where.
        address: String,
    },
    /// The server lacks what the scripts need.
    #[error("{address} runs Redis {}.{}.{}: at least 6.2 is needed", .version.0, .version.1, .version.2)]
    ServerTooOld {
        /// Where.
        address: String,
        /// What it is.
        version: (u16, u16, u16),
    },
    /// The server may throw jobs away, and the client is strict.
    #[error(
        "{address} evicts keys when its memory is full (maxmemory-policy {policy}), jobs among them: set \
         maxmemory-policy noeviction"
    )]
    Evicts {
        /// Where.
        address: String,
        /// Its policy.
        policy: String,
    },
    /// Certainly not done: it was not sent in time, or refused each time.
    #[error("not done: {}", not_sent(address, *why, detail.as_deref()))]
    NotSent {
        /// Where it was to go.
        address: String,
        /// The last refusal.
        why: Option<Refusal>,
        /// Why there is no connection, if there is none.
        detail: Option<String>,
    },
    /// The answer did not come in time: it may have been done, or be done yet, since a client goes on asking for up to
    /// 9 min. Publishing again with the same id tells.
    #[error(
        "{address} did not answer in time, and may have carried this out: repeat it, a publish with the same id, to be \
         sure"
    )]
    Unknown {
        /// Who was asked.
        address: String,
    },
    /// The client's own backlog was full. Nothing was sent.
    #[error("too much is waiting to be sent to Redis: try again later, or raise the backlog")]
    Busy,
    /// The queue holds as many jobs, or bytes, as it may.
    #[error("{}", queue_full(queue, full))]
    QueueFull {
        /// Which queue.
        queue: QueueName,
        /// How full.
        full: Full,
    },
    /// Newer clients keep more of the queue than this one knows: there is a gate. Nothing was done.
    #[error("{}", gated(queue, gate))]
    Gated {
        /// Which queue.
        queue: QueueName,
        /// What it needs.
        gate: String,
    },
    /// On a Redis Cluster, the queue would forward to a key of another slot, which no script could write. Nothing changed.
    #[error("{}", other_slot(queue, forward))]
    OtherSlot {
        /// Which queue.
        queue: QueueName,
        /// Where to.
        forward: Forward,
    },
    /// The job cannot be written as a record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The config was changed by somebody else. Nothing changed.
    #[error("the config of queue {queue} has version {cfgver} by now: read it again, then decide")]
    Conflict {
        /// Which queue.
        queue: QueueName,
        /// The version it has.
        cfgver: u64,
    },
    /// The answer cannot be understood, or the script failed. It may have been done.
    #[error("Redis answered what cannot be understood: {0}")]
    Broken(String),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
    /// The engine of this client, or worker, is gone: a bug. Leases that it held end by themselves, and their jobs run again.
    #[error(
        "the engine of this client or worker panicked, which is a bug of delayline: connect anew, and report what the \
         panic said"
    )]
    EnginePanicked,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<TooLarge> for Error {
    fn from(TooLarge { bytes, limit }: TooLarge) -> Error {
        Error::TooLarge { bytes, limit }
    }
}

fn queue_full(queue: &QueueName, full: &Full) -> Fault {
    Fault::QueueFull { queue: queue.clone(), full: *full }
}

fn gated(queue: &QueueName, gate: &str) -> Fault {
    Fault::Gated { queue: queue.clone(), gate: gate.to_owned() }
}

fn other_slot(queue: &QueueName, forward: &Forward) -> Fault {
    Fault::OtherSlot { queue: queue.clone(), forward: forward.clone() }
}

fn not_sent(address: &str, why: Option<Refusal>, detail: Option<&str>) -> String {
    match (why, detail) {
        (None | Some(Refusal::NotConnected), Some(detail)) => format!(
            "{address} cannot be reached ({detail}): check that Redis runs there and lets this user in, then try again"
        ),
        (None, None) => format!("{address} did not answer in time: try again when it does"),
        (Some(why), _) => format!("{address}: {why}"),
    }
}
