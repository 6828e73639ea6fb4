//! What outcomes are called.

use delayline_core::{CancelOutcome, ExtendOutcome, RescheduleOutcome, SettleOutcome, UnixMs};

use crate::Problem;

/// What became of a job that was settled, or why its lease is no longer one.
///
/// # Errors
/// [`Problem`] with `stale` if the lease has ended, with `gone` if the job has, with `settled` if another verdict is known
/// to have come first: an ack that is repeated finds no job, so where it finds one it is not the first verdict.
pub fn settled(outcome: SettleOutcome, is_ack: bool) -> Result<&'static str, Problem> {
    match outcome {
        SettleOutcome::Done => Ok("ok"),
        SettleOutcome::Repeat if is_ack => Err(settled_otherwise()),
        SettleOutcome::Repeat => Ok("repeat"),
        SettleOutcome::Died => Ok("dead"),
        SettleOutcome::Expired => Ok("expired"),
        SettleOutcome::Stale => Err(stale()),
        SettleOutcome::Gone => Err(gone()),
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

fn settled_otherwise() -> Problem {
    Problem::conflict(
        "settled",
        "the first verdict on this lease stands, which was a nack, snooze, release or bury: the job is not acked",
    )
}

fn gone() -> Problem {
    Problem::new(410, "gone", "the job no longer exists: it was acked, purged or destroyed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_after_another_verdict_is_told_from_a_repeat() {
        assert_eq!(settled(SettleOutcome::Repeat, false).unwrap(), "repeat");
        let problem = settled(SettleOutcome::Repeat, true).unwrap_err();
        assert_eq!((problem.status, problem.code), (409, "settled"));
        for is_ack in [false, true] {
            assert_eq!(settled(SettleOutcome::Done, is_ack).unwrap(), "ok");
            assert_eq!(settled(SettleOutcome::Gone, is_ack).unwrap_err().code, "gone");
            assert_eq!(settled(SettleOutcome::Stale, is_ack).unwrap_err().code, "stale");
        }
    }
}
