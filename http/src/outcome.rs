//! What outcomes are called.

use delayline_core::{CancelOutcome, ExtendOutcome, RescheduleOutcome, SettleOutcome, UnixMs};

use crate::Problem;

/// What became of a job that was settled, or why its lease is no longer one.
///
/// # Errors
/// [`Problem`] with `stale` if the lease has ended, with `gone` if the job has.
pub fn settled(outcome: SettleOutcome) -> Result<&'static str, Problem> {
    match outcome {
        SettleOutcome::Done => Ok("ok"),
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

fn gone() -> Problem {
    Problem::new(410, "gone", "the job no longer exists: it was acked, purged or destroyed")
}
