use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    DELAY_MAX_MS, Edit, Fence, Identity, Invalid, JobId, QueueConfig, QueueName, Reason, Shard, Shards, Span,
    UnixMicros, UnixMs, VerdictKind,
};

/// One request to the store: a script, or a plain Redis command that the engine needs beside them.
///
/// [`wire`](crate::wire) writes it for Redis; the embedded store carries it out in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Fixes, or reads, the deployment's layout and number of shards.
    Open {
        /// How many shards there are to be.
        shards: Shards,
    },
    /// Reads the server's version and eviction policy.
    Server,
    /// Accepts jobs. At most [`Command::JOBS_MAX`].
    Publish {
        /// Where to.
        queue: QueueName,
        /// Which batch of which lane this is.
        session: Session,
        /// What the queue may hold, unless its config says otherwise.
        ceiling: Ceiling,
        /// The jobs.
        jobs: Vec<Entry>,
    },
    /// Asks for leases.
    Reserve {
        /// Where from.
        queue: QueueName,
        /// Which batch of which lane this is.
        session: Session,
        /// At most [`Command::GRANTS_MAX`]; zero takes the engine off the waiting list.
        count: u16,
        /// How long the leases last.
        lease_ms: u64,
        /// How many bytes of records to answer; one job is granted whatever its size.
        max_bytes: u64,
        /// Whether the engine hears wake-ups, and so may be put on the waiting list.
        wakeable: bool,
    },
    /// Ends leases. At most [`Command::JOBS_MAX`].
    Settle {
        /// The queue of all of them.
        queue: QueueName,
        /// Recompute the agenda: the engine's last lease of the queue ends here.
        tidy: bool,
        /// Which leases, and how.
        leases: Vec<(JobId, Fence, Settlement)>,
    },
    /// Renews leases. At most [`Command::JOBS_MAX`].
    Extend {
        /// The queue of all of them.
        queue: QueueName,
        /// How long from now.
        lease_ms: u64,
        /// Which.
        leases: Vec<(JobId, Fence)>,
    },
    /// Takes waiting jobs away. At most [`Command::JOBS_MAX`].
    Cancel {
        /// Their queue.
        queue: QueueName,
        /// Which batch of which lane this is.
        session: Session,
        /// Which.
        ids: Vec<JobId>,
    },
    /// Gives waiting jobs another due time. At most [`Command::JOBS_MAX`].
    Reschedule {
        /// Their queue.
        queue: QueueName,
        /// Which batch of which lane this is.
        session: Session,
        /// Which, and when.
        jobs: Vec<(JobId, Due)>,
    },
    /// Reads a shard's agenda, and takes or keeps its pump lease.
    Peek {
        /// Which shard.
        shard: Shard,
        /// Who asks.
        engine: Identity,
        /// How many entries.
        entries: u16,
        /// How long the pump lease lasts; zero gives it up.
        lease_ms: u64,
        /// Take the lease even if nothing is due. Otherwise its holder is looked for only if something is.
        stay: bool,
        /// Queues of the shard whose first due time is asked for too. At most [`Command::PEEKS_MAX`].
        queues: Vec<QueueName>,
    },
    /// Does what must happen in a queue though nobody asks.
    Tend {
        /// Which queue.
        queue: QueueName,
        /// At most this many of each kind; up to [`Command::GRANTS_MAX`].
        limit: u16,
        /// Where the queue forwards to, if that is known.
        forward: Option<Forward>,
    },
    /// Makes dead letters due.
    Requeue {
        /// Their queue.
        queue: QueueName,
        /// Which.
        dead: DeadLetters,
    },
    /// Removes dead letters.
    Purge {
        /// Their queue.
        queue: QueueName,
        /// Which.
        dead: DeadLetters,
    },
    /// Replaces a queue's config.
    Configure {
        /// Which queue.
        queue: QueueName,
        /// The version it replaces: 0 if there was none, `None` for any.
        cfgver: Option<u64>,
        /// The whole new config.
        config: QueueConfig,
    },
    /// Pauses or resumes a queue.
    Pause {
        /// Which queue.
        queue: QueueName,
        /// The version it changes: 0 if there was none, `None` for any.
        cfgver: Option<u64>,
        /// Pause, or resume.
        paused: bool,
    },
    /// Removes a queue and all it holds.
    Destroy {
        /// Which queue.
        queue: QueueName,
        /// The birth of the one that is meant, from its [`Stats`](crate::Stats); 0 if it does not know it.
        born: UnixMicros,
    },
    /// Reads one job.
    Inspect {
        /// Its queue.
        queue: QueueName,
        /// Which.
        id: JobId,
    },
    /// Reads jobs page by page.
    List {
        /// Their queue.
        queue: QueueName,
        /// In which state.
        place: Place,
        /// At most so many; up to [`Command::GRANTS_MAX`].
        limit: u16,
        /// How many bytes of records to answer; one job is listed whatever its size.
        max_bytes: u64,
        /// The time and id of the last one seen.
        after: Option<(UnixMs, JobId)>,
    },
    /// Reads a queue's config, counters and sizes.
    Stats {
        /// Which queue.
        queue: QueueName,
        /// How many hours of delayed jobs to count, at most 48.
        hours: u8,
    },
    /// Reads the names of a shard's queues page by page.
    Queues {
        /// Which shard.
        shard: Shard,
        /// 0 at first, then what the last page answered.
        cursor: u64,
        /// About so many.
        count: u16,
    },
}

/// Which batch of which lane a command is: the script answers a repeat as it answered the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Whose lane.
    pub engine: Identity,
    /// Its index among the lanes of its queue and verb; cancel and reschedule are one verb.
    pub lane: u8,
    /// Grows by one with each batch; a resend carries the same.
    pub sequence: u64,
}

/// A job as `publish` carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub id: JobId,
    /// When it is due.
    pub due: Due,
    /// When it expires, counted from the call; zero for never.
    pub ttl_ms: u64,
    /// Whether it takes the place of a waiting job of its name.
    pub replace: bool,
    /// Whether it edits the waiting job of its name, which keeps its attempts.
    pub edit: Option<Edit>,
    /// The record in its plain form. Serde writes its length, and reads as many zeros.
    #[serde(with = "crate::recording::elided::length")]
    pub record: Bytes,
}

/// When something is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Due {
    /// So long after the call; at a resend, after what is left of it.
    After {
        /// How long.
        ms: u64,
    },
    /// At this time by Redis's clock.
    At(UnixMs),
}

impl Due {
    /// Checks that it is at most 10 years off, given the wall clock.
    pub fn validate(self, now: UnixMs) -> Result<(), Invalid> {
        let ms = self.distance_ms(now);
        if ms > DELAY_MAX_MS { Err(Invalid::Delay(Duration::from_millis(ms))) } else { Ok(()) }
    }

    /// How far off it is by a wall clock, in milliseconds; for limits only.
    pub(crate) fn distance_ms(self, now: UnixMs) -> u64 {
        match self {
            Due::After { ms } => ms,
            Due::At(at) => at.since(now),
        }
    }
}

impl From<Span> for Due {
    fn from(delay: Span) -> Due {
        Due::After { ms: delay.0 }
    }
}

/// What a queue may hold before publishing answers that it is full; zero means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Jobs, dead letters included.
    pub jobs: u64,
    /// Bytes of records, estimated from their running mean.
    pub bytes: u64,
}

/// How a lease ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Settlement {
    /// The job is done.
    Ack,
    /// The attempt failed: due again after `after_ms`, or dead if it was the last.
    Nack {
        /// How long.
        after_ms: u64,
        /// Why.
        reason: Reason,
    },
    /// Later, and the attempt does not count.
    Snooze {
        /// How long.
        after_ms: u64,
    },
    /// As if never granted: the old due time, unless a delay is given, and the attempt does not count.
    Release {
        /// How long; zero restores the old due time.
        after_ms: u64,
    },
    /// Dead at once.
    Bury {
        /// Why.
        reason: Reason,
    },
}

impl Settlement {
    /// Which verdict it is.
    pub fn verdict(&self) -> VerdictKind {
        match self {
            Settlement::Ack => VerdictKind::Ack,
            Settlement::Nack { .. } => VerdictKind::Nack,
            Settlement::Snooze { .. } => VerdictKind::Snooze,
            Settlement::Release { .. } => VerdictKind::Release,
            Settlement::Bury { .. } => VerdictKind::Bury,
        }
    }
}

/// Where a queue forwards its due jobs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Forward {
    /// The bodies are pushed to the tail of a Redis list.
    List(String),
    /// The jobs are added to a Redis stream.
    Stream(String),
}

/// Which dead letters are meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetters {
    /// These, or all if `None`. At most [`Command::JOBS_MAX`].
    pub ids: Option<Vec<JobId>>,
    /// Only what was dead at this time, so that a repeat means the same letters; `None` for now.
    pub until: Option<UnixMs>,
    /// At most so many; up to [`Command::JOBS_MAX`].
    pub limit: u16,
}

/// The states of jobs that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Due, and not held.
    Ready,
    /// Due later.
    Delayed,
    /// Held by a consumer; listed by the end of the lease.
    Leased,
    /// Dead letters; listed by the time of death.
    Dead,
}

/// What decoding a command's reply needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Open,
    Server,
    Publish,
    Reserve,
    Settle,
    Extend,
    Cancel,
    Reschedule,
    Peek,
    Tend,
    Requeue,
    Purge,
    Configure,
    Pause,
    Destroy,
    Inspect,
    List(Place),
    Stats,
    Queues,
}

impl Command {
    /// The most jobs of a command other than reserve, tend and list.
    pub const JOBS_MAX: usize = 500;
    /// The most jobs of a reserve, a tend or a list.
    pub const GRANTS_MAX: u16 = 256;
    /// The most hours of delayed jobs that stats count.
    pub const HOURS_MAX: u8 = 48;
    /// The most queues of a peek: each costs the store a call.
    pub const PEEKS_MAX: usize = 64;

    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Command::Open { .. } => Kind::Open,
            Command::Server => Kind::Server,
            Command::Publish { .. } => Kind::Publish,
            Command::Reserve { .. } => Kind::Reserve,
            Command::Settle { .. } => Kind::Settle,
            Command::Extend { .. } => Kind::Extend,
            Command::Cancel { .. } => Kind::Cancel,
            Command::Reschedule { .. } => Kind::Reschedule,
            Command::Peek { .. } => Kind::Peek,
            Command::Tend { .. } => Kind::Tend,
            Command::Requeue { .. } => Kind::Requeue,
            Command::Purge { .. } => Kind::Purge,
            Command::Configure { .. } => Kind::Configure,
            Command::Pause { .. } => Kind::Pause,
            Command::Destroy { .. } => Kind::Destroy,
            Command::Inspect { .. } => Kind::Inspect,
            Command::List { place, .. } => Kind::List(*place),
            Command::Stats { .. } => Kind::Stats,
            Command::Queues { .. } => Kind::Queues,
        }
    }

    /// The queue it is about, if it is about one.
    pub fn queue(&self) -> Option<&QueueName> {
        match self {
            Command::Open { .. } | Command::Server | Command::Peek { .. } | Command::Queues { .. } => None,
            Command::Publish { queue, .. }
            | Command::Reserve { queue, .. }
            | Command::Settle { queue, .. }
            | Command::Extend { queue, .. }
            | Command::Cancel { queue, .. }
            | Command::Reschedule { queue, .. }
            | Command::Tend { queue, .. }
            | Command::Requeue { queue, .. }
            | Command::Purge { queue, .. }
            | Command::Configure { queue, .. }
            | Command::Pause { queue, .. }
            | Command::Destroy { queue, .. }
            | Command::Inspect { queue, .. }
            | Command::List { queue, .. }
            | Command::Stats { queue, .. } => Some(queue),
        }
    }

    /// Whether its script answers that newer ones are needed, where a queue has a gate. What only renews leases or reads one
    /// job means the same whatever else is kept.
    pub fn has_gate(&self) -> bool {
        !matches!(self, Command::Extend { .. } | Command::Inspect { .. }) && self.queue().is_some()
    }

    /// The shard it goes to, if the deployment has `shards`.
    pub fn shard(&self, shards: Shards) -> Shard {
        match self {
            Command::Peek { shard, .. } | Command::Queues { shard, .. } => *shard,
            _ => self.queue().map_or(Shard(0), |queue| shards.of(queue)),
        }
    }

    /// About how many bytes it carries beside its names.
    pub fn bytes(&self) -> usize {
        match self {
            Command::Publish { jobs, .. } => jobs.iter().map(|job| job.record.len()).sum(),
            _ => 0,
        }
    }
}

impl Due {
    /// The due time if the store received the command at `now`: delays round up, no delay is now.
    pub fn counted_from(self, now: UnixMicros) -> UnixMs {
        match self {
            Due::After { ms: 0 } => now.floor_ms(),
            Due::After { ms } => now.ceil_ms() + ms,
            Due::At(at) => at,
        }
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Forward::List(key) => write!(f, "list:{key}"),
            Forward::Stream(key) => write!(f, "stream:{key}"),
        }
    }
}

impl Forward {
    /// Whether the key has a name as those that a deployment keeps its own things under, whatever its prefix.
    pub(crate) fn is_delaylines_own(&self) -> bool {
        let (Forward::List(key) | Forward::Stream(key)) = self;
        let Some((tag, name)) = key.strip_prefix('{').and_then(|key| key.split_once("}:")) else {
            return false;
        };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let salted = tag.rsplit_once(':').and_then(|(_, salted)| salted.split_once('.'));
        name == "config" || salted.is_some_and(|(shard, salt)| digits(shard) && digits(salt))
    }
}

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Forward, ForwardError> {
        match text.split_once(':') {
            Some(("list", key)) if !key.is_empty() => Ok(Forward::List(key.to_string())),
            Some(("stream", key)) if !key.is_empty() => Ok(Forward::Stream(key.to_string())),
            _ => Err(ForwardError(text.chars().take(80).collect())),
        }
    }
}

/// A destination that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no destination: write list:KEY or stream:KEY")]
pub struct ForwardError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_queue_forwards_into_what_a_deployment_keeps() {
        for (key, own) in [
            ("{dl}:config", true),
            ("{dl:0.0}:orders:due", true),
            ("{billing:12.7}:agenda", true),
            ("{dl:0.0}:broken:1:orders:due", true),
            ("orders{dl:0.0}", false),
            ("{dl}:orders", false),
            ("{a:b.c}:list", false),
            ("out", false),
            ("{", false),
        ] {
            for forward in [Forward::List(key.to_string()), Forward::Stream(key.to_string())] {
                assert_eq!(forward.is_delaylines_own(), own, "{key}");
                let config = crate::QueueConfig { forward: Some(forward), ..Default::default() };
                assert_eq!(config.validate().is_err(), own, "{key}");
            }
        }
    }

    #[test]
    fn what_is_no_destination_is_shown_in_part() {
        let error = "x".repeat(10_000).parse::<Forward>().unwrap_err();
        assert_eq!(error, ForwardError("x".repeat(80)));
    }
}
