use delayline_core::{DeadLetters, Due, Reason, Settlement, UnixMs};

/// What can happen next in a small case. Those that name a lease mean the last one that was granted, or the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letter {
    /// These jobs are published.
    Publish(&'static [&'static str], How),
    /// This engine asks for so many jobs; for none when it leaves.
    Reserve(u64, u16),
    /// The lease ends so.
    Settle(Which, End),
    /// The lease is renewed.
    Extend(Which),
    Cancel(&'static str),
    /// A job is to be due now, or later.
    Reschedule(&'static str, Due),
    Tend,
    /// This engine takes the pump lease.
    Peek(u64),
    Pause(bool),
    /// All dead letters.
    Requeue,
    /// All dead letters.
    Purge,
    Destroy,
    /// The last publish, reserve, cancel or reschedule once more.
    Repeat,
    /// The record of a job is lost.
    Lose(&'static str),
    /// So many milliseconds pass.
    Pass(u64),
}

/// How jobs are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Now,
    Later,
    /// With a TTL that ends before the lease does.
    Ttl,
    /// In place of a waiting one, later.
    Replace,
}

/// Which lease is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Last,
    Before,
}

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Ack,
    Nack,
    NackLater,
    Snooze,
    Release,
    Bury,
}

pub(crate) const LATER_MS: u64 = 2_000;
pub(crate) const TTL_MS: u64 = 5_000;
pub(crate) const LEASE_MS: u64 = 30_000;
const LATER: Due = Due::After { ms: LATER_MS };
const NOW: Due = Due::After { ms: 0 };

const ALL: [Letter; 38] = [
    Letter::Publish(&["a"], How::Now),
    Letter::Publish(&["b"], How::Now),
    Letter::Publish(&["b", "a"], How::Now),
    Letter::Publish(&["a"], How::Later),
    Letter::Publish(&["a"], How::Ttl),
    Letter::Publish(&["a"], How::Replace),
    Letter::Reserve(1, 1),
    Letter::Reserve(1, 2),
    Letter::Reserve(2, 2),
    Letter::Reserve(1, 0),
    Letter::Settle(Which::Last, End::Ack),
    Letter::Settle(Which::Last, End::Nack),
    Letter::Settle(Which::Last, End::NackLater),
    Letter::Settle(Which::Last, End::Snooze),
    Letter::Settle(Which::Last, End::Release),
    Letter::Settle(Which::Last, End::Bury),
    Letter::Settle(Which::Before, End::Ack),
    Letter::Settle(Which::Before, End::Nack),
    Letter::Settle(Which::Before, End::Bury),
    Letter::Extend(Which::Last),
    Letter::Extend(Which::Before),
    Letter::Cancel("a"),
    Letter::Cancel("b"),
    Letter::Reschedule("a", LATER),
    Letter::Reschedule("a", NOW),
    Letter::Tend,
    Letter::Peek(1),
    Letter::Peek(2),
    Letter::Pause(true),
    Letter::Pause(false),
    Letter::Requeue,
    Letter::Purge,
    Letter::Destroy,
    Letter::Repeat,
    Letter::Lose("a"),
    Letter::Pass(LATER_MS),
    Letter::Pass(TTL_MS),
    Letter::Pass(LEASE_MS),
];

impl Letter {
    /// The alphabet.
    pub(crate) fn all() -> [Letter; ALL.len()] {
        ALL
    }

    /// Who acts, if it is an engine by its name.
    pub(crate) fn engine(self) -> Option<u64> {
        match self {
            Letter::Reserve(engine, _) | Letter::Peek(engine) => Some(engine),
            _ => None,
        }
    }
}

impl End {
    pub(crate) fn settlement(self) -> Settlement {
        let reason = Reason::new("no");
        match self {
            End::Ack => Settlement::Ack,
            End::Nack => Settlement::Nack { after_ms: 0, reason },
            End::NackLater => Settlement::Nack { after_ms: LATER_MS, reason },
            End::Snooze => Settlement::Snooze { after_ms: LATER_MS },
            End::Release => Settlement::Release { after_ms: 0 },
            End::Bury => Settlement::Bury { reason },
        }
    }
}

/// All dead letters until now.
pub(crate) fn dead(now: UnixMs) -> DeadLetters {
    DeadLetters { ids: None, until: Some(now), limit: 10 }
}
