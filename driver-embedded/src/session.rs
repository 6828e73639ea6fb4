use std::fmt;
use std::ops::Bound::{Included, Unbounded};

use delayline_core::{
    CancelOutcome, Fence, Identity, JobId, PublishOutcome, RescheduleOutcome, Session, UnixMicros, UnixMs,
};

use crate::bug::Bug;
use crate::script::Script;

/// How long a session is kept at least.
pub(crate) const SESSION_MS: u64 = 600_000;
const KEEP_SESSIONS: u64 = 64;
const SWEEP_LEAST: u64 = 500;
const SWEEP_MOST: u64 = 1_500;
const SWEEP_STEP_MS: u64 = 1_000;
const SWEEP_MS: u64 = 60_000;
const SWEEP_LATE_MS: u64 = 10_000;

/// A lane's field in `meta`: `s<engine><verb><index>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) engine: Identity,
    pub(crate) verb: Verb,
    pub(crate) index: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Publish,
    Reserve,
    /// Cancel and reschedule.
    Change,
}

/// What the last batch of a lane was, and what it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) sequence: u64,
    pub(crate) keep_until: UnixMs,
    pub(crate) answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Published { since: UnixMicros, outcomes: Vec<PublishOutcome> },
    Granted { fence: Fence, lease_end: UnixMs, ids: Vec<JobId> },
    Cancelled(Vec<CancelOutcome>),
    Rescheduled(Vec<(RescheduleOutcome, UnixMs)>),
}

/// What a batch is to its lane.
pub(crate) enum Recall {
    New,
    Again(Answer),
    Superseded,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Publish => 'p',
            Verb::Reserve => 'r',
            Verb::Change => 'c',
        };
        write!(f, "s{}{verb}{}", self.engine, self.index)
    }
}

impl Lane {
    pub(crate) fn of(session: &Session, verb: Verb) -> Lane {
        Lane { engine: session.engine, verb, index: session.lane }
    }
}

impl Script<'_> {
    pub(crate) fn recall(&self, session: &Session, verb: Verb) -> Recall {
        let not_idempotent = match verb {
            Verb::Publish => Bug::PublishNotIdempotent,
            Verb::Reserve => Bug::ReserveNotIdempotent,
            Verb::Change => Bug::CancelNotIdempotent,
        };
        if self.planted(Bug::SessionIgnored) || self.planted(not_idempotent) {
            return Recall::New;
        }
        let past = self.queue.meta.lanes.get(&Lane::of(session, verb));
        match past.filter(|past| past.keep_until > self.now) {
            Some(past) if past.sequence == session.sequence => Recall::Again(past.answer.clone()),
            Some(past) if past.sequence > session.sequence && !self.planted(Bug::SupersededAccepted) => {
                Recall::Superseded
            }
            _ => Recall::New,
        }
    }

    pub(crate) fn remember(&mut self, session: &Session, verb: Verb, keep_until: UnixMs, answer: Answer) {
        let keep_until = keep_until.max(self.now + SESSION_MS);
        let past = Past { sequence: session.sequence, keep_until, answer };
        let meta = &mut self.queue.meta;
        if meta.lanes.insert(Lane::of(session, verb), past).is_none() {
            crate::meta::raise(&mut meta.sessions, 1);
        }
        self.sweep_sessions();
    }

    /// Drops sessions that were kept long enough, a part a second. Which part is not what Redis takes: a session that was
    /// kept long enough means nothing, so that it does not matter when it goes.
    pub(crate) fn sweep_sessions(&mut self) {
        if self.planted(Bug::SessionsNotSwept) {
            return;
        }
        let unbounded = self.planted(Bug::UnboundedSweep);
        let (now, meta) = (self.now, &mut self.queue.meta);
        let (at, from) = meta.sweep.filter(|(at, _)| *at <= now + SWEEP_MS).unwrap_or((now, None));
        if meta.sessions.unwrap_or(0) <= KEEP_SESSIONS || at > now {
            return;
        }
        let most =
            if unbounded { u64::MAX >> 1 } else { (now.since(at) / 10).clamp(SWEEP_LEAST, SWEEP_MOST) };
        let most = usize::try_from(most).unwrap_or(usize::MAX - 1);
        let lanes = meta.lanes.range((from.map_or(Unbounded, Included), Unbounded));
        let part: Vec<(Lane, UnixMs)> =
            lanes.take(most + 1).map(|(lane, past)| (*lane, past.keep_until)).collect();
        for (lane, keep_until) in part.iter().take(most) {
            if *keep_until + SWEEP_LATE_MS <= now {
                meta.lanes.remove(lane);
            }
        }
        let next = part.get(most).map(|(lane, _)| *lane);
        meta.sessions = Some(meta.lanes.len() as u64);
        meta.sweep = Some((now + if next.is_some() { SWEEP_STEP_MS } else { SWEEP_MS }, next));
    }
}
