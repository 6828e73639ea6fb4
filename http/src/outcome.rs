//! What outcomes are called.

use delayline_core::{CancelOutcome, ExtendOutcome, RescheduleOutcome, SettleOutcome, UnixMs, VerdictKind};

use crate::Problem;

/// What became of a job that was settled, or why its lease is no longer one.
///
/// # Errors
/// [`Problem`] with `stale` if the lease has ended, with `gone` if the job has, with `settled` if another verdict came
/// first.
pub fn settled(outcome: SettleOutcome) -> Result<&'static str, Problem> {
    match outcome {
        SettleOutcome::Done => Ok("ok"),
        SettleOutcome::Repeat => Ok("repeat"),
        SettleOutcome::Died => Ok("dead"),
        SettleOutcome::Expired => Ok("expired"),
        SettleOutcome::Stale => Err(stale()),
        SettleOutcome::Gone => Err(gone()),
        SettleOutcome::Conflict(first) => Err(settled_otherwise(first)),
    }
}

/// When a lease ends that was to be extended, or why it is no longer one.
///
/// # Errors
/// As of [`settled`].
pub fn extended(outcome: ExtendOutcome, ends: UnixMs) -> Result<UnixMs, Problem> {
    match outcome {
        ExtendOutcome::Extended => Ok(ends),
        ExtendOutcome::Stale => Err(stale()),
        ExtendOutcome::Gone => Err(gone()),
    }
}

/// What became of a job that was to be cancelled.
pub fn cancelled(outcome: CancelOutcome) -> &'static str {
    match outcome {
        CancelOutcome::Cancelled => "cancelled",
        CancelOutcome::Leased => "leased",
        CancelOutcome::Dead => "dead",
        CancelOutcome::Gone => "gone",
    }
}

/// What became of a job that was to be rescheduled.
pub fn rescheduled(outcome: RescheduleOutcome) -> &'static str {
    match outcome {
        RescheduleOutcome::Moved => "moved",
        RescheduleOutcome::Leased => "leased",
        RescheduleOutcome::Dead => "dead",
        RescheduleOutcome::Gone => "gone",
        RescheduleOutcome::Expires => "expires",
    }
}

fn stale() -> Problem {
    Problem::conflict(
        "stale",
        "this lease has ended, so the job may be another consumer's: stop working on it, and extend sooner next time",
    )
}

fn settled_otherwise(first: VerdictKind) -> Problem {
    let what = match first {
        VerdictKind::Ack => "an ack, and the job is done",
        VerdictKind::Nack => "a nack: the attempt counts as failed",
        VerdictKind::Snooze => "a snooze: the job comes later, without spending the attempt",
        VerdictKind::Release => "a release: the job waits as if it had not been taken",
        VerdictKind::Bury => "a bury, and the job is a dead letter",
    };
    Problem::conflict("settled", format!("the first verdict on this lease stands, which was {what}"))
}

fn gone() -> Problem {
    Problem::new(410, "gone", "the job no longer exists: it was acked, purged or destroyed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_after_another_one_is_told_which_came_first() {
        use VerdictKind::{Ack, Bury, Nack, Release, Snooze};
        for first in [Ack, Nack, Snooze, Release, Bury] {
            let problem = settled(SettleOutcome::Conflict(first)).unwrap_err();
            assert_eq!((problem.status, problem.code), (409, "settled"));
            let said = [format!("was a {}", first.name()), format!("was an {}", first.name())];
            assert!(said.iter().any(|said| problem.detail.contains(said)), "{}", problem.detail);
        }
        assert_eq!(settled(SettleOutcome::Repeat).unwrap(), "repeat");
        assert_eq!(settled(SettleOutcome::Done).unwrap(), "ok");
        assert_eq!(settled(SettleOutcome::Gone).unwrap_err().code, "gone");
        assert_eq!(settled(SettleOutcome::Stale).unwrap_err().code, "stale");
    }
}
