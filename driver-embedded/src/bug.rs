use std::fmt;
use std::str::FromStr;

macro_rules! bugs {
    ($(#[doc = $doc:literal] $bug:ident $name:literal,)*) => {
        /// A mistake that can be planted in a store, to show that tests find it.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $(#[doc = $doc] $bug,)*
        }

        impl Bug {
            /// All there are.
            pub const ALL: [Bug; [$($name),*].len()] = [$(Bug::$bug),*];

            /// Its name in kebab case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Bug::$bug => $name,)*
                }
            }
        }
    };
}

bugs! {
    /// A verdict ends a lease whatever its fence.
    AckWithoutFenceCheck "ack-without-fence-check",
    /// A reserve that finds a broken state fails when it has leased other jobs.
    ErrorAfterLease "error-after-lease",
    /// A lease that ends later than any can is respected.
    EndlessLease "endless-lease",
    /// A job is granted a millisecond before it is due.
    EarlyPromotion "early-promotion",
    /// A grant does not say when its lease ends, so nobody ends it.
    LeaseForgotten "lease-forgotten",
    /// A job dropped at the end of its TTL is counted nowhere.
    LostCounter "lost-counter",
    /// A reserve grants all that is due, however few it asked for.
    UnboundedMove "unbounded-move",
    /// A tend ends, expires and purges all it finds, whatever its limit.
    UnboundedTend "unbounded-tend",
    /// No batch is taken for a repeat or for superseded.
    SessionIgnored "session-ignored",
    /// A repeated publish is carried out again.
    PublishNotIdempotent "publish-not-idempotent",
    /// A repeated reserve grants other jobs.
    ReserveNotIdempotent "reserve-not-idempotent",
    /// A repeated cancel or reschedule is carried out again.
    CancelNotIdempotent "cancel-not-idempotent",
    /// A batch older than the last of its lane is carried out.
    SupersededAccepted "superseded-accepted",
    /// The agenda learns of an earlier event as if it came a second later.
    AgendaLate "agenda-late",
    /// The agenda does not learn of what was published.
    AgendaNotLowered "agenda-not-lowered",
    /// The agenda is computed without the ends of leases.
    AgendaWithoutLeases "agenda-without-leases",
    /// A lease ends a second before the time that was answered.
    WrongLeaseEnd "wrong-lease-end",
    /// The lower bound of lease ends rises to that of the last grant, so earlier ends wait for it.
    ReapLate "reap-late",
    /// A renewal moves a lease's end to an earlier time.
    ExtendShortens "extend-shortens",
    /// Grants of the same second share a fence.
    FenceShared "fence-shared",
    /// A grant does not count as an attempt.
    AttemptNotCounted "attempt-not-counted",
    /// A job whose last attempt failed gets another.
    OneAttemptMore "one-attempt-more",
    /// A snooze does not give the attempt back.
    SnoozeSpendsAttempt "snooze-spends-attempt",
    /// A job nacked is due at once, whatever the delay.
    NackWithoutDelay "nack-without-delay",
    /// A nack does not keep its reason.
    NackLosesReason "nack-loses-reason",
    /// A released job is due now, no longer when it was.
    ReleaseLosesDue "release-loses-due",
    /// A job that dies is no dead letter.
    DeadLetterLost "dead-letter-lost",
    /// A dead letter made due keeps the attempts that it died of.
    RequeueKeepsAttempts "requeue-keeps-attempts",
    /// A cancelled job stays in `due`.
    CancelLeavesGhost "cancel-leaves-ghost",
    /// A cancel takes a held job away.
    CancelsLeased "cancels-leased",
    /// A publish that may replace replaces a held job.
    ReplacesLeased "replaces-leased",
    /// A publish that may not replace replaces a waiting job.
    DuplicateReplaces "duplicate-replaces",
    /// An edit changes a waiting job that is no longer as its editor found it.
    EditIgnoresChanges "edit-ignores-changes",
    /// An edit gives a job all its attempts back.
    EditForgetsAttempts "edit-forgets-attempts",
    /// A paused queue grants jobs.
    PausedGrants "paused-grants",
    /// A job is granted after its TTL ended.
    ExpiredGranted "expired-granted",
    /// A reserve and a page of a list are as large as they get.
    MaxBytesIgnored "max-bytes-ignored",
    /// Jobs are appended to where the queue forwards to, twice.
    ForwardsTwice "forwards-twice",
    /// A job published due wakes nobody.
    NoWakeOnPublish "no-wake-on-publish",
    /// A verdict that comes after another one is answered as its repeat.
    ConflictTakenForRepeat "conflict-taken-for-repeat",
    /// A queue's gate stops nothing.
    GateIgnored "gate-ignored",
    /// A job whose state cannot be read is put back to wait, for ever.
    BrokenStateWaits "broken-state-waits",
    /// A lower bound of lease ends that cannot be read is taken for none.
    LostLowerBound "lost-lower-bound",
    /// A queue that was born does not write its name again.
    IndexNotMended "index-not-mended",
    /// A pump lease that ends later than any can is respected.
    PumpLeaseUnbounded "pump-lease-unbounded",
    /// A queue that comes to be announces no head.
    SilentBirth "silent-birth",
    /// A tend that finds ready jobs wakes nobody.
    NoWakeOnTend "no-wake-on-tend",
    /// Who opens a deployment whose config is gone does not write it again.
    ConfigNotFixed "config-not-fixed",
    /// Sessions stay, however long they were kept.
    SessionsNotSwept "sessions-not-swept",
    /// A sweep looks at all sessions at once.
    UnboundedSweep "unbounded-sweep",
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Bug {
    type Err = String;

    fn from_str(name: &str) -> Result<Bug, String> {
        let named = Bug::ALL.into_iter().find(|bug| bug.name() == name);
        named.ok_or_else(|| format!("there is no bug {name:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_of_one_bug() {
        for bug in Bug::ALL {
            assert_eq!(bug.name().parse(), Ok(bug));
        }
        assert!("no-such-bug".parse::<Bug>().is_err());
    }
}
