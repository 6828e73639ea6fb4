use std::time::Duration;

use delayline_core::{ATTEMPTS, Backoff, DELAY_MAX_MS, Invalid, QueueConfig, Verdict};

pub(crate) fn verdict(verdict: &Verdict) -> Result<(), Invalid> {
    match verdict {
        Verdict::Nack { after_ms: Some(ms), .. } => length("retry delay", Duration::from_millis(*ms)),
        Verdict::Snooze { after_ms } => length("snooze", Duration::from_millis(*after_ms)),
        _ => Ok(()),
    }
}

pub(crate) fn config(config: &QueueConfig) -> Result<(), Invalid> {
    if let Some(attempts) = config.attempts.filter(|attempts| !ATTEMPTS.contains(attempts)) {
        return Err(Invalid::Attempts(attempts));
    }
    config.backoff.as_ref().map_or(Ok(()), Backoff::validate)?;
    config.retention_ms.map_or(Ok(()), |ms| length("retention", Duration::from_millis(ms)))
}

/// Whole milliseconds, rounded up: nothing is ever early.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn length(what: &'static str, length: Duration) -> Result<(), Invalid> {
    if length > Duration::from_millis(DELAY_MAX_MS) { Err(Invalid::TooLong { what, length }) } else { Ok(()) }
}
