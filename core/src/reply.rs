use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    Backoff, Ceiling, Command, Fence, Forward, Identity, JobId, Place, QueueConfig, QueueName, Refusal,
    Shards, State, UnixMicros, UnixMs, VerdictKind,
};

/// What the store answered to one [`Command`](crate::Command).
///
/// `time` is Redis's clock when the script ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Reply {
    /// To open: what is fixed, whoever fixed it, since `born`.
    Opened { time: UnixMicros, layout: u32, shards: Shards, born: UnixMicros },
    /// To server.
    Server { version: (u16, u16, u16), policy: Option<String> },
    /// To publish: delays were counted from `since`, which a repeat answers from the first time.
    Published { time: UnixMicros, since: UnixMicros, outcomes: Vec<PublishOutcome>, full: Option<Full> },
    /// To all that is about a queue but extend and inspect: newer scripts are needed there, for what `gate` says. Nothing
    /// was done. The time is missing as in [`Reply::Settled`].
    Gated { time: Option<UnixMicros>, gate: String },
    /// To publish, reserve, cancel and reschedule: a later batch of the lane has run; this one did nothing.
    Superseded { time: UnixMicros },
    /// To reserve: `next` is the next event of the queue, if it was just computed; `more` that due jobs were left;
    /// not `open` that the queue is paused or forwards.
    Granted {
        time: UnixMicros,
        fence: Fence,
        lease_end: UnixMs,
        backoff: Option<Backoff>,
        jobs: Vec<Grant>,
        next: Option<UnixMs>,
        more: bool,
        open: bool,
    },
    /// To settle; the time is missing if all were acks.
    Settled { time: Option<UnixMicros>, outcomes: Vec<SettleOutcome> },
    /// To extend.
    Extended { time: UnixMicros, outcomes: Vec<ExtendOutcome>, lease_end: UnixMs },
    /// To cancel.
    Cancelled { time: UnixMicros, outcomes: Vec<CancelOutcome> },
    /// To reschedule.
    Rescheduled { time: UnixMicros, outcomes: Vec<RescheduleOutcome>, dues: Vec<UnixMs> },
    /// To peek: who holds the pump lease until when, the first entries of the agenda, and the first due time of each queue
    /// asked for.
    Peeked {
        time: UnixMicros,
        holder: Option<(Identity, UnixMs)>,
        agenda: Vec<(QueueName, UnixMs)>,
        firsts: Vec<Option<UnixMs>>,
    },
    /// To tend.
    Tended {
        time: UnixMicros,
        ended: u64,
        expired: u64,
        purged: u64,
        forwarded: u64,
        next: Option<UnixMs>,
        more: bool,
        forward: Option<Forward>,
    },
    /// To requeue and purge: an outcome for each id asked for, none if all were meant.
    DeadMoved { time: UnixMicros, until: UnixMs, moved: u64, left: u64, outcomes: Vec<bool> },
    /// To configure and pause.
    Configured { time: UnixMicros, cfgver: u64 },
    /// To configure: another config was found; nothing changed.
    ConfigConflict { time: UnixMicros, cfgver: u64, found: QueueConfig },
    /// To configure: on a cluster, what the queue is to forward to is in another slot than the queue. Nothing changed.
    OtherSlot,
    /// To pause: another version was found; nothing changed.
    PauseConflict { time: UnixMicros, cfgver: u64, paused: bool },
    /// To destroy.
    Destroyed { time: UnixMicros, waiting: u64, leased: u64, dead: u64 },
    /// To destroy and inspect: there is no such thing.
    Gone { time: UnixMicros },
    /// To inspect.
    Found { time: UnixMicros, job: Stored },
    /// To list.
    Listed { time: UnixMicros, jobs: Vec<Stored>, more: bool },
    /// To stats.
    Counted { time: UnixMicros, stats: Stats },
    /// To queues: the cursor of the next page, 0 at the end.
    Named { cursor: u64, queues: Vec<QueueName> },
    /// To any: certainly not executed.
    Refused(Refusal),
    /// To any: it cannot be understood, or the script failed. It may have run.
    Broken(String),
}

impl Reply {
    /// Redis's clock when the script ran, where the answer tells it.
    pub fn time(&self) -> Option<UnixMicros> {
        match self {
            Reply::Server { .. }
            | Reply::Named { .. }
            | Reply::OtherSlot
            | Reply::Refused(_)
            | Reply::Broken(_) => None,
            Reply::Settled { time, .. } | Reply::Gated { time, .. } => *time,
            Reply::Opened { time, .. }
            | Reply::Published { time, .. }
            | Reply::Superseded { time }
            | Reply::Granted { time, .. }
            | Reply::Extended { time, .. }
            | Reply::Cancelled { time, .. }
            | Reply::Rescheduled { time, .. }
            | Reply::Peeked { time, .. }
            | Reply::Tended { time, .. }
            | Reply::DeadMoved { time, .. }
            | Reply::Configured { time, .. }
            | Reply::ConfigConflict { time, .. }
            | Reply::PauseConflict { time, .. }
            | Reply::Destroyed { time, .. }
            | Reply::Gone { time }
            | Reply::Found { time, .. }
            | Reply::Listed { time, .. }
            | Reply::Counted { time, .. } => Some(*time),
        }
    }

    /// Whether it is of the command's kind, and speaks of as many jobs as that did, or of no more than it asked for.
    pub(crate) fn fits(&self, command: &Command) -> bool {
        match (self, command) {
            (Reply::Published { outcomes, .. }, Command::Publish { jobs, .. }) => {
                outcomes.len() == jobs.len()
            }
            (Reply::Granted { jobs, .. }, Command::Reserve { count, .. }) => jobs.len() <= (*count).into(),
            (Reply::Settled { outcomes, .. }, Command::Settle { leases, .. }) => {
                outcomes.len() == leases.len()
            }
            (Reply::Extended { outcomes, .. }, Command::Extend { leases, .. }) => {
                outcomes.len() == leases.len()
            }
            (Reply::Cancelled { outcomes, .. }, Command::Cancel { ids, .. }) => outcomes.len() == ids.len(),
            (Reply::Rescheduled { outcomes, dues, .. }, Command::Reschedule { jobs, .. }) => {
                outcomes.len() == jobs.len() && dues.len() == jobs.len()
            }
            (Reply::Peeked { agenda, firsts, .. }, Command::Peek { entries, queues, .. }) => {
                agenda.len() <= (*entries).into() && firsts.len() == queues.len()
            }
            (
                Reply::DeadMoved { moved, outcomes, .. },
                Command::Requeue { dead, .. } | Command::Purge { dead, .. },
            ) => {
                let ids = dead.ids.as_ref().map_or(0, Vec::len);
                outcomes.len() == ids && *moved <= u64::from(dead.limit).max(ids as u64)
            }
            (Reply::Listed { jobs, .. }, Command::List { limit, .. }) => jobs.len() <= (*limit).into(),
            (
                Reply::Superseded { .. },
                Command::Publish { .. }
                | Command::Reserve { .. }
                | Command::Cancel { .. }
                | Command::Reschedule { .. },
            )
            | (Reply::Opened { .. }, Command::Open { .. })
            | (Reply::Server { .. }, Command::Server)
            | (Reply::Tended { .. }, Command::Tend { .. })
            | (Reply::Configured { .. }, Command::Configure { .. } | Command::Pause { .. })
            | (Reply::ConfigConflict { .. } | Reply::OtherSlot, Command::Configure { .. })
            | (Reply::PauseConflict { .. }, Command::Pause { .. })
            | (Reply::Destroyed { .. }, Command::Destroy { .. })
            | (Reply::Gone { .. }, Command::Destroy { .. } | Command::Inspect { .. })
            | (Reply::Found { .. }, Command::Inspect { .. })
            | (Reply::Counted { .. }, Command::Stats { .. })
            | (Reply::Named { .. }, Command::Queues { .. })
            | (Reply::Refused(_) | Reply::Broken(_), _) => true,
            (Reply::Gated { .. }, command) => command.has_gate(),
            _ => false,
        }
    }
}

/// What became of one job of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublishOutcome {
    /// Accepted.
    New,
    /// Accepted; the waiting job of its id is cancelled, or edited.
    Replaced,
    /// The id is in use, or the job to be edited is not as it was found; what is there is untouched.
    Duplicate,
    /// The queue is full.
    Full,
}

/// How full a full queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Full {
    /// Jobs it holds, dead letters included.
    pub jobs: u64,
    /// Dead letters.
    pub dead: u64,
    /// Bytes of records, estimated.
    pub bytes: u64,
    /// What it may hold.
    pub ceiling: Ceiling,
}

/// What became of one lease of a settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SettleOutcome {
    /// As asked.
    Done,
    /// As asked, and the job is now a dead letter.
    Died,
    /// The job had expired while it was held: its end is the expiry.
    Expired,
    /// There is no such job.
    Gone,
    /// The lease is another's, or has ended.
    Stale,
    /// This verdict was carried out before, under this lease.
    Repeat,
    /// Another verdict was carried out before, under this lease, and stands: this one.
    Conflict(VerdictKind),
}

/// What became of one lease of an extend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExtendOutcome {
    /// Renewed.
    Extended,
    /// There is no such job.
    Gone,
    /// The lease is another's, or has ended.
    Stale,
}

/// What became of one job of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelOutcome {
    /// Taken away.
    Cancelled,
    /// A consumer holds it.
    Leased,
    /// It is a dead letter.
    Dead,
    /// There is no such job.
    Gone,
}

/// What became of one job of a reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RescheduleOutcome {
    /// It has the new due time.
    Moved,
    /// A consumer holds it.
    Leased,
    /// It is a dead letter.
    Dead,
    /// There is no such job.
    Gone,
    /// It would expire before the new due time.
    Expires,
}

/// A job as reserve grants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name.
    pub id: JobId,
    /// When it was due.
    pub due: UnixMs,
    /// The record in whichever form it is stored.
    #[serde(with = "crate::recording::elided::whole")]
    pub record: Bytes,
    /// Its state after the grant.
    pub state: State,
}

/// A job as inspect and list answer it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Its name.
    pub id: JobId,
    /// Where it is.
    pub place: Place,
    /// Its due time, the end of its lease, or the time of its death, by place.
    pub at: UnixMs,
    /// If it was delivered at least once, or died.
    pub state: Option<State>,
    /// When it expires; inspect only.
    pub expires: Option<UnixMs>,
    /// The record in whichever form it is stored.
    #[serde(with = "crate::recording::elided::whole")]
    pub record: Bytes,
}

/// A queue's config, counters and sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// When the queue came to be, or `None` if there is no such queue.
    pub born: Option<UnixMicros>,
    /// The version of its config; 0 if it was never configured.
    pub cfgver: u64,
    /// Whether it is paused.
    pub paused: bool,
    /// Its config.
    pub config: QueueConfig,
    /// Why the last forward failed.
    pub forward_error: Option<String>,
    /// The running mean of its records' lengths, in bytes.
    pub mean_bytes: u64,
    /// What happened so far.
    pub counters: Counters,
    /// Jobs that are due and not held.
    pub ready: u64,
    /// Jobs that are due later.
    pub delayed: u64,
    /// Jobs held by consumers.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// The earliest due time of a waiting job.
    pub oldest_due: Option<UnixMs>,
    /// The delayed jobs of each hour from now, as many hours as were asked for.
    pub hours: Vec<u64>,
}

/// What happened in a queue since it came to be.
///
/// The jobs it holds are `published − acked − cancelled − expired − purged − forwarded − lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Counters {
    pub published: u64,
    pub granted: u64,
    pub acked: u64,
    pub nacked: u64,
    pub snoozed: u64,
    pub released: u64,
    /// Leases that ended without a verdict.
    pub ended: u64,
    /// Jobs that became dead letters.
    pub died: u64,
    pub requeued: u64,
    /// Dead letters removed, by hand or by retention.
    pub purged: u64,
    pub cancelled: u64,
    /// Jobs dropped because their TTL ended.
    pub expired: u64,
    pub forwarded: u64,
    /// Ids found without a record.
    pub lost: u64,
    /// Jobs whose record or state could not be read; they are dead letters.
    pub unreadable: u64,
    /// Times a record was put back because it is of a newer version.
    pub newer: u64,
    /// Keys of another type, which somebody else wrote: they were set aside under a name that begins with `broken`.
    pub broken: u64,
}

impl Counters {
    /// The counter that has this name in `meta`.
    #[doc(hidden)]
    pub fn named_mut(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "published" => &mut self.published,
            "granted" => &mut self.granted,
            "acked" => &mut self.acked,
            "nacked" => &mut self.nacked,
            "snoozed" => &mut self.snoozed,
            "released" => &mut self.released,
            "ended" => &mut self.ended,
            "died" => &mut self.died,
            "requeued" => &mut self.requeued,
            "purged" => &mut self.purged,
            "cancelled" => &mut self.cancelled,
            "expired" => &mut self.expired,
            "forwarded" => &mut self.forwarded,
            "lost" => &mut self.lost,
            "unreadable" => &mut self.unreadable,
            "newer" => &mut self.newer,
            "broken" => &mut self.broken,
            _ => return None,
        })
    }

    /// Each by the name it has in `meta`, in the order in which statistics answer them.
    pub fn named(&self) -> [(&'static str, u64); 17] {
        [
            ("published", self.published),
            ("granted", self.granted),
            ("acked", self.acked),
            ("nacked", self.nacked),
            ("snoozed", self.snoozed),
            ("released", self.released),
            ("ended", self.ended),
            ("died", self.died),
            ("requeued", self.requeued),
            ("purged", self.purged),
            ("cancelled", self.cancelled),
            ("expired", self.expired),
            ("forwarded", self.forwarded),
            ("lost", self.lost),
            ("unreadable", self.unreadable),
            ("newer", self.newer),
            ("broken", self.broken),
        ]
    }
}
