use alloc::string::String;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::wire::LAYOUT;
use crate::{
    Answer, ConfigError, Forward, Full, Invalid, Job, QueueName, RecordError, Refusal, SettleOutcome, Shard,
    Shards, UnixMs,
};

/// The caller's name for a publish, a take or a request; the engine only hands it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub u64);

/// One round trip. Never reused; a resend has a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket(pub(crate) u64);

/// A managed job: the engine renews its lease and watches it until it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Held(pub(crate) u64);

/// What the engine tells the application.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The answer to a publish, a take or a request: exactly one each, unless it was forgotten.
    Answered {
        /// Whose.
        token: Token,
        /// What.
        answer: Result<Answer, Fault>,
    },
    /// A managed job is to be run, then settled by its `held`.
    Run(Job),
    /// The lease of a managed job is lost: whoever runs it should stop. Settling it does nothing any more.
    Abandon(Held),
    /// What became of a settled job.
    Settled {
        /// Which.
        held: Held,
        /// What.
        outcome: SettleOutcome,
    },
    /// The verdict on a managed job could not be carried out, or nobody knows whether it was: if not, the job comes back
    /// when its lease ends.
    Unsettled(Held),
    /// What happened in a queue though nobody asked, by this engine's tending.
    Tended {
        /// Where.
        queue: QueueName,
        /// Leases that had ended: their jobs wait again, or are dead.
        ended: u64,
        /// Jobs that expired.
        expired: u64,
        /// Dead letters past their retention.
        purged: u64,
        /// Jobs handed on.
        forwarded: u64,
    },
    /// Something went wrong that no caller waits for; worth a log line.
    Fault(Fault),
    /// The engine stops for good, as [`Engine::drain`](crate::Engine::drain) does: what waited, and all that it is told
    /// from now on, is answered with this. Managed jobs may end; then comes [`Event::Drained`].
    Ended(Fault),
    /// All is done and sent: nothing more will happen.
    Drained,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The deadline passed and the request was certainly not carried out.
    #[error("not sent in time: {}", .0.map_or("Redis did not answer earlier requests".into(), |why| alloc::format!("{why}")))]
    NotSent(Option<Refusal>),
    /// The deadline passed and the request may have been carried out; publishing again with the same id tells.
    #[error("it is not known whether Redis carried this out: repeat it with the same id to be sure")]
    Unknown,
    /// The queue holds as many jobs, or bytes, as it may.
    #[error(
        "queue {queue} is full: it holds {} jobs ({} of them dead letters) of {} bytes, and may hold {} jobs of {} bytes; \
         consume, purge dead letters, or raise max_jobs and max_bytes",
        .full.jobs, .full.dead, .full.bytes, .full.ceiling.jobs, .full.ceiling.bytes
    )]
    QueueFull {
        /// Which queue.
        queue: QueueName,
        /// How full.
        full: Full,
    },
    /// Newer clients keep more of the queue than this one knows: there is a gate. Nothing was done.
    #[error(
        "queue {queue} needs a newer client than this one, which does not know its gate {gate:?}: update; if nobody set it, \
         remove the field gate of its key meta"
    )]
    Gated {
        /// Which queue.
        queue: QueueName,
        /// What it needs.
        gate: String,
    },
    /// On a Redis Cluster, the queue would forward to a key of another slot, which no script could write. Nothing changed.
    #[error(
        "queue {queue} cannot forward to {forward}: a Redis Cluster keeps that in another slot than the queue; begin its name \
         with the hash tag of the queue's keys, which `redis-cli --scan --pattern '*:{queue}:meta'` shows in braces"
    )]
    OtherSlot {
        /// Which queue.
        queue: QueueName,
        /// Where to.
        forward: Forward,
    },
    /// Redis was emptied, or lost the deployment's config, and somebody opened it anew otherwise: jobs published here
    /// would reach nobody there. What was under way may have been carried out.
    #[error(
        "the deployment has {found} shards of layout {layout} by now, and this engine works with {wanted} of layout \
         {LAYOUT}: Redis lost its data or its config, and it was opened anew. Nothing more is sent: stop whoever works \
         with the other number, then start again"
    )]
    OtherDeployment {
        /// Its layout.
        layout: u32,
        /// How many shards it has.
        found: Shards,
        /// How many this engine works with.
        wanted: Shards,
    },
    /// The job cannot be written as a record, or a record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A queue's config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What is asked is beyond a limit. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The answer cannot be understood, or the script failed.
    #[error("Redis answered what cannot be understood: {0}")]
    Broken(String),
    /// The engine is shutting down and takes nothing new.
    #[error("shutting down: nothing new is accepted")]
    Draining,
}

impl Fault {
    /// An answer that belongs to another question.
    pub(crate) fn unexpected() -> Fault {
        Fault::Broken("an answer to another question".into())
    }
}

/// What a notification said. All of them may lie: they only cost a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wakeup {
    /// A queue has work for this engine.
    Ready(QueueName),
    /// The first thing to happen in a shard is now at this time.
    Head(Shard, UnixMs),
    /// Notifications are heard from now on; some may have been missed.
    Subscribed,
    /// Notifications are no longer heard.
    Unsubscribed,
}

/// Why the engine wants to be called at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeoutReason {
    /// An answer is overdue, or a request is to be sent again.
    Flight,
    /// A caller's deadline passes.
    Deadline,
    /// A lease is to be renewed, or ends.
    Lease,
    /// A queue is to be asked.
    Poll,
    /// A shard is to be tended.
    Pump,
}

/// How many round trips the driver can still pay for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// Round trips left.
    pub trips: u32,
    /// What delivering one job costs beside.
    pub per_job: u32,
}

impl Credit {
    /// As many as it takes.
    pub const UNLIMITED: Credit = Credit { trips: u32::MAX, per_job: 0 };
}

/// The engine's backlog has no room for it; here it is back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlogged<T>(pub T);
