use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// All that was seen of a run of chaos. Times are in µs of the machine's clock, which is Redis's too, unless they are said
/// to be in ms.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What was asked for, by id.
    pub jobs: BTreeMap<String, Story>,
    /// What consumers ran, in no order.
    pub runs: Vec<Run>,
    /// When writes that were answered may have been lost.
    pub losses: Vec<Loss>,
    /// What was done to the parts.
    pub events: Vec<Happened>,
    /// What the queues say at the end.
    pub ledgers: BTreeMap<String, Ledger>,
    /// The dead letters at the end, by id.
    pub dead: BTreeMap<String, Letter>,
    /// The jobs that wait or are held at the end.
    pub held: Vec<String>,
    /// Keys that are left though nothing is.
    pub keys: Vec<String>,
    /// Answers that no client should ever get, and parts that did not do as they were told.
    pub oddities: Vec<String>,
}

/// What a job is to do, and what its clients asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// Which queue.
    pub queue: String,
    /// The most attempts.
    pub attempts: u16,
    /// How long it waits after a failed attempt, in ms.
    pub backoff: u64,
    /// When it expires after its publication, in ms.
    pub ttl: Option<u64>,
    /// How many of its attempts fail.
    pub fails: u16,
    /// How it ends then.
    pub end: End,
    /// What was asked for, in that order.
    pub calls: Vec<Call>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Well.
    #[default]
    Done,
    /// Badly.
    Failed,
    /// With a verdict that there is no hope.
    Buried,
    /// With a verdict that it is too early, by so many ms.
    Snoozed(u64),
    /// It was dropped: its lease was lost, or its worker stopped.
    Dropped,
}

/// A request of a client's, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What for.
    pub what: Asked,
    /// When it was made.
    pub from: u64,
    /// When it was answered, or given up.
    pub to: u64,
    /// The answer.
    pub answer: Answer,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// That the job be, after so many ms.
    Publish(u64),
    /// That it be no more.
    Cancel,
    /// That it be due after so many ms.
    Reschedule(u64),
    /// That a delivery, by its fence, end so.
    Settle(u64, End),
    /// That a delivery, by its fence, last longer.
    Extend(u64),
}

/// What a client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done; for a publish or a reschedule the due time in ms, for an extension the lease's end in ms.
    Done(u64),
    /// The id was there.
    Duplicate,
    /// The job was not in a state for it.
    Missed,
    /// Certainly not done.
    NotDone,
    /// Nobody knows.
    Unknown,
}

/// A delivery at a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Who.
    pub consumer: String,
    /// Which job.
    pub id: String,
    /// When that was published, by its publisher's clock in ms: tells apart jobs that had the id one after the other.
    pub published: u64,
    /// The attempt.
    pub attempt: u16,
    /// The grant.
    pub fence: u64,
    /// When it was due, by Redis's clock in ms.
    pub due: u64,
    /// When it was granted, by Redis's clock in ms.
    pub granted: u64,
    /// When the lease was to end, by Redis's clock in ms.
    pub ends: u64,
    /// When it began.
    pub began: u64,
    /// How it ended, and when, if the consumer lived to say so.
    pub end: Option<(End, u64)>,
}

/// Whatever was answered between these times may be lost: all that had not ended before, and had begun by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// Why.
    pub why: String,
}

/// A fault, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// When.
    pub at: u64,
    /// What.
    pub what: String,
    /// Whether all that it broke is whole again.
    pub is_end: bool,
}

/// A queue's own account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Its counters.
    pub counters: delayline_core::Counters,
    /// The jobs it holds, dead letters too.
    pub holds: u64,
    /// Its dead letters.
    pub dead: u64,
}

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// When the job was published, by its publisher's clock in ms.
    pub published: u64,
    /// Why it died.
    pub reason: String,
    /// The attempts it spent.
    pub attempt: u16,
}

impl Story {
    /// When the lease of a run ends that was extended as clients were told, in ms.
    pub(super) fn lease_end(&self, run: &Run) -> u64 {
        let extended = self.calls.iter().filter(|call| call.what == Asked::Extend(run.fence));
        let ends = extended.filter_map(|call| match call.answer {
            Answer::Done(ends) => Some(ends),
            _ => None,
        });
        ends.fold(run.ends, u64::max)
    }
}

impl Call {
    /// Whether it was under way at this time in ms, which is rounded up or down.
    pub(super) fn published(&self, ms: u64) -> bool {
        (self.from / 1_000..=self.to.div_ceil(1_000)).contains(&ms)
    }
}

impl Loss {
    /// Whether what took place between these times may be lost.
    pub fn covers(&self, from: u64, to: u64) -> bool {
        from <= self.to && to >= self.from
    }
}

/// The machine's time in µs.
///
/// # Panics
/// If its clock is before 1970.
pub(super) fn now() -> u64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    u64::try_from(passed.as_micros()).expect("a clock before the year 500000")
}
