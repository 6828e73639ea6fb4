use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::pace::Pace;
use crate::{
    Answer, ClockModel, Config, Credit, Event, Fault, Held, Identity, Key, Millis, QueueName, Shard, Shards,
    Ticket, Token, Wheel,
};

/// How soon what makes no progress is tried again.
pub(super) const STUCK_MS: u64 = 1_000;

/// What all machines of an engine share.
#[derive(Serialize, Deserialize)]
pub(super) struct Base {
    pub(super) now: Millis,
    pub(super) config: Config,
    pub(super) identity: Identity,
    pub(super) clock: ClockModel,
    pub(super) wheel: Wheel<Timer>,
    #[serde(skip)]
    pub(super) events: VecDeque<Event>,
    pub(super) wakeable: bool,
    pub(super) draining: bool,
    /// The layout and number of shards of the deployment that took the place of the engine's own.
    pub(super) other: Option<(u32, Shards)>,
    /// What the driver could still pay for when it was last asked, less what was handed out since; `None` for all.
    pub(super) allowance: Option<Credit>,
    sequence: u64,
    pub(super) pace: Pace,
}

/// What an engine waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Timer {
    Overdue(Ticket),
    Resend(BatchId),
    PublishDeadline(Token),
    AskDeadline(Token),
    TakeDeadline(Token),
    Renew(Held),
    LeaseEnd(Held),
    Poll(QueueName),
    Peek(Shard),
    Tend(QueueName),
    Gap,
}

/// A command on its way, from its making to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct BatchId(pub(super) u64);

impl Base {
    pub(super) fn new(config: Config, identity: Identity, now: Millis) -> Base {
        let clock = if config.same_clock { ClockModel::same() } else { ClockModel::default() };
        Base {
            now,
            config,
            identity,
            clock,
            wheel: Wheel::new(now),
            events: VecDeque::new(),
            wakeable: false,
            draining: false,
            other: None,
            allowance: None,
            sequence: 0,
            pace: Pace::default(),
        }
    }

    /// One counter for all lanes: each lane sees it grow, which is all that its session asks for.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// How many jobs can be delivered, if a round trip is kept for their verdicts, and one to send them again.
    pub(super) fn deliverable(&self) -> usize {
        let Some(Credit { trips, per_job }) = self.allowance else { return usize::MAX };
        let jobs = trips.saturating_sub(2).checked_div(per_job);
        jobs.map_or(usize::MAX, |jobs| usize::try_from(jobs).unwrap_or(usize::MAX))
    }

    /// So many jobs are handed out.
    pub(super) fn deliver(&mut self, jobs: usize) {
        if let Some(Credit { trips, per_job }) = &mut self.allowance {
            let cost = u64::from(*per_job) * jobs as u64;
            *trips = trips.saturating_sub(u32::try_from(cost).unwrap_or(u32::MAX));
        }
    }

    pub(super) fn after(&mut self, ms: u64, timer: Timer) -> Key {
        self.wheel.insert(self.now + ms, timer)
    }

    pub(super) fn cancel(&mut self, key: Option<Key>) {
        if let Some(key) = key {
            self.wheel.cancel(key);
        }
    }

    /// Why nothing new is accepted.
    pub(super) fn closed(&self) -> Fault {
        let wanted = self.config.shards;
        let other = |(layout, found)| Fault::OtherDeployment { layout, found, wanted };
        self.other.map_or(Fault::Draining, other)
    }

    pub(super) fn answer(&mut self, token: Token, answer: Result<Answer, Fault>) {
        self.events.push_back(Event::Answered { token, answer });
    }
}
