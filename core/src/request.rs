use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{CancelOutcome, Command, ExtendOutcome, Fault, Invalid, RescheduleOutcome, SettleOutcome};
use crate::{
    Due, Job, JobId, Lease, Place, QueueConfig, QueueName, Shard, Shards, Stats, Stored, UnixMs, Verdict,
};

/// What an application may ask beside publishing and taking. Each is answered once, by
/// [`Event::Answered`](crate::Event::Answered).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What is asked.
    pub ask: Ask,
    /// How long the caller waits for an answer.
    pub timeout_ms: u64,
}

/// What is asked by a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Opens the deployment; answered by [`Answer::Opened`].
    Open {
        /// How many shards it is to have.
        shards: Shards,
    },
    /// Asks for the server's version and policy; answered by [`Answer::Server`].
    Server,
    /// Ends a delivery by its lease; answered by [`Answer::Settled`].
    Settle {
        /// Which.
        lease: Lease,
        /// How.
        verdict: Verdict,
    },
    /// Renews a lease; answered by [`Answer::Extended`].
    Extend {
        /// Which.
        lease: Lease,
        /// How long from now.
        lease_ms: u64,
    },
    /// Takes waiting jobs away, at most 500; answered by [`Answer::Cancelled`].
    Cancel {
        /// Their queue.
        queue: QueueName,
        /// Which.
        ids: Vec<JobId>,
    },
    /// Gives waiting jobs another due time, at most 500; answered by [`Answer::Rescheduled`].
    Reschedule {
        /// Their queue.
        queue: QueueName,
        /// Which, and when.
        jobs: Vec<(JobId, Due)>,
    },
    /// Reads one job; answered by [`Answer::Inspected`].
    Inspect {
        /// Its queue.
        queue: QueueName,
        /// Which.
        id: JobId,
    },
    /// Reads jobs page by page; answered by [`Answer::Listed`].
    List {
        /// Their queue.
        queue: QueueName,
        /// In which state.
        place: Place,
        /// At most so many, up to 256.
        limit: u16,
        /// The time and id of the last one seen.
        after: Option<(UnixMs, JobId)>,
    },
    /// Reads a queue's config, counters and sizes; answered by [`Answer::Counted`].
    Stats {
        /// Which queue.
        queue: QueueName,
        /// How many hours of delayed jobs to count, at most 48.
        hours: u8,
    },
    /// Reads the names of a shard's queues page by page; answered by [`Answer::Named`].
    Queues {
        /// Which shard.
        shard: Shard,
        /// 0 at first, then what the last page answered.
        cursor: u64,
        /// About so many.
        count: u16,
    },
    /// Makes dead letters due; answered by [`Answer::DeadMoved`].
    Requeue {
        /// Their queue.
        queue: QueueName,
        /// These, at most 500, or all.
        ids: Option<Vec<JobId>>,
    },
    /// Removes dead letters; answered by [`Answer::DeadMoved`].
    Purge {
        /// Their queue.
        queue: QueueName,
        /// These, at most 500, or all.
        ids: Option<Vec<JobId>>,
    },
    /// Replaces a queue's config; answered by [`Answer::Configured`].
    Configure {
        /// Which queue.
        queue: QueueName,
        /// The version it replaces; `None` for whichever is found.
        cfgver: Option<u64>,
        /// The whole new config.
        config: QueueConfig,
    },
    /// Pauses or resumes a queue; answered by [`Answer::Configured`].
    Pause {
        /// Which queue.
        queue: QueueName,
        /// Pause, or resume.
        paused: bool,
    },
    /// Removes a queue and all it holds; answered by [`Answer::Destroyed`].
    Destroy {
        /// Which queue.
        queue: QueueName,
    },
}

impl Ask {
    /// Checks every limit.
    pub(crate) fn validate(&self) -> Result<(), Fault> {
        let most = Command::JOBS_MAX;
        let at_most = |what, count: usize| Invalid::count(what, count.max(1), most);
        match self {
            Ask::Extend { lease_ms, .. } => Invalid::lease(*lease_ms)?,
            Ask::Cancel { ids, .. } => at_most("number of jobs to cancel", ids.len())?,
            Ask::Reschedule { jobs, .. } => at_most("number of jobs to reschedule", jobs.len())?,
            Ask::Requeue { ids: Some(ids), .. } | Ask::Purge { ids: Some(ids), .. } => {
                Invalid::count("number of dead letters", ids.len(), most)?;
            }
            Ask::List { limit, .. } => {
                let most = Command::GRANTS_MAX.into();
                Invalid::count("number of jobs to list", (*limit).into(), most)?;
            }
            Ask::Queues { count: 0, .. } => {
                Invalid::count("number of queues to list", 0, u16::MAX.into())?;
            }
            Ask::Stats { hours, .. } if *hours > Command::HOURS_MAX => {
                return Err(Invalid::Hours(*hours).into());
            }
            Ask::Configure { config, .. } => config.validate()?,
            _ => {}
        }
        Ok(())
    }
}

/// What the engine answers to a publish, a take or a [`Request`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Answer {
    /// The job is accepted and due then, by Redis's clock; it may have taken the place of a waiting one.
    Published {
        id: JobId,
        due: UnixMs,
        replaced: bool,
    },
    /// The id is in use; the existing job is untouched.
    Duplicate {
        id: JobId,
    },
    /// Jobs handed out; none if none came in time.
    Taken(Vec<Job>),
    /// What became of a lease.
    Settled(SettleOutcome),
    /// What became of a lease, and its new end.
    Extended(ExtendOutcome, UnixMs),
    Cancelled(Vec<CancelOutcome>),
    /// What became of each job, and the due time that it has if it moved.
    Rescheduled(Vec<(RescheduleOutcome, UnixMs)>),
    Inspected(Option<Stored>),
    Listed {
        jobs: Vec<Stored>,
        more: bool,
    },
    Counted(Stats),
    /// The cursor of the next page, 0 at the end.
    Named {
        queues: Vec<QueueName>,
        cursor: u64,
    },
    /// How many moved, how many dead letters are left, and for each id asked for whether it moved.
    DeadMoved {
        moved: u64,
        left: u64,
        outcomes: Vec<bool>,
    },
    /// The new version.
    Configured {
        cfgver: u64,
    },
    /// Another version was found than the request replaces; nothing changed.
    Conflict {
        cfgver: u64,
    },
    /// How many jobs went; `None` if there was no such queue.
    Destroyed(Option<Sizes>),
    Opened {
        layout: u32,
        shards: Shards,
    },
    Server {
        version: (u16, u16, u16),
        policy: Option<alloc::string::String>,
    },
}

/// How many jobs a destroyed queue held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Ready and delayed.
    pub waiting: u64,
    /// Held by consumers.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
}
