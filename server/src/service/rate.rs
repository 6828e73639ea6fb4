mod buckets;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use thiserror::Error;

pub(crate) use self::buckets::Buckets;

/// The most that a limit may name, of either number: what a bucket counts stays far below the range of its clock.
const MOST: u64 = 1 << 40;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// How often something may happen: `per_second` in the long run, and `burst` at once. Written `100/s`, whose burst is one
/// second's worth, or `100/s burst 200`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit {
    per_second: u64,
    burst: u64,
}

/// A text that is not a rate limit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum RateLimitError {
    #[error("{0:?} is no rate limit: write so many a second, as in 100/s, or 100/s burst 200")]
    Unreadable(String),
    #[error("a rate limit is of 1 to {MOST} a second, and so is its burst")]
    OutOfRange,
}

/// What one client has used of a rate limit. The limit is not kept in it, so that a changed limit holds at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// When all that was used has come back; before the first use, nothing was.
    full_at: Option<Instant>,
}

/// There is less left of a rate limit than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the rate limit is used up for {retry_after:?}")]
pub(crate) struct Exceeded {
    /// How long it takes until there is enough.
    pub(crate) retry_after: Duration,
}

impl RateLimit {
    pub(crate) fn new(per_second: u64, burst: u64) -> Result<RateLimit, RateLimitError> {
        let fits = |number| (1..=MOST).contains(&number);
        if fits(per_second) && fits(burst) {
            Ok(RateLimit { per_second, burst })
        } else {
            Err(RateLimitError::OutOfRange)
        }
    }

    /// How long it takes until so much comes back.
    fn time_for(self, amount: u64) -> Duration {
        let nanos = (u128::from(amount) * NANOS_PER_SECOND).div_ceil(u128::from(self.per_second));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Reads a limit whose numbers `read` understands.
    pub(crate) fn parse(text: &str, read: impl Fn(&str) -> Option<u64>) -> Result<RateLimit, RateLimitError> {
        let unreadable = || RateLimitError::Unreadable(text.chars().take(80).collect());
        let (rate, burst) = match text.split_once(" burst ") {
            Some((rate, burst)) => (rate, Some(burst.trim())),
            None => (text, None),
        };
        let per_second = rate.trim().strip_suffix("/s").and_then(&read).ok_or_else(unreadable)?;
        let burst = burst.map_or(Ok(per_second), |burst| read(burst).ok_or_else(unreadable))?;
        RateLimit::new(per_second, burst)
    }
}

impl FromStr for RateLimit {
    type Err = RateLimitError;

    fn from_str(text: &str) -> Result<RateLimit, RateLimitError> {
        RateLimit::parse(text, |number| {
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| number.parse().unwrap_or(u64::MAX))
        })
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.per_second)?;
        if self.burst != self.per_second {
            write!(f, " burst {}", self.burst)?;
        }
        Ok(())
    }
}

impl Bucket {
    /// Uses `amount` of the limit, or nothing. More than the burst is let through from a full bucket, which then takes the
    /// longer to fill: what comes as a whole cannot come in parts.
    pub(crate) fn take(&mut self, limit: RateLimit, amount: u64, now: Instant) -> Result<(), Exceeded> {
        let used = self.full_at.map_or(Duration::ZERO, |full_at| full_at.saturating_duration_since(now));
        let spare = limit.time_for(limit.burst.saturating_sub(amount));
        if used > spare {
            return Err(Exceeded { retry_after: used.saturating_sub(spare) });
        }
        self.charge(limit, amount, now);
        Ok(())
    }

    /// Uses `amount` of the limit even if there is less left: what comes next waits the longer.
    pub(crate) fn charge(&mut self, limit: RateLimit, amount: u64, now: Instant) {
        let from = self.full_at.map_or(now, |full_at| full_at.max(now));
        // An amount of centuries leaves the bucket as it is.
        self.full_at = from.checked_add(limit.time_for(amount)).or(self.full_at);
    }

    /// When all that was used has come back, if anything was.
    fn full_at(&self) -> Option<Instant> {
        self.full_at
    }
}

impl Exceeded {
    /// For the header `Retry-After`: whole seconds, 1 at least.
    pub(crate) fn retry_after_s(self) -> u32 {
        let seconds = self.retry_after.as_secs() + u64::from(self.retry_after.subsec_nanos() > 0);
        u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> RateLimit {
        text.parse().unwrap()
    }

    #[test]
    fn a_limit_is_read_as_it_is_written() {
        for (text, per_second, burst, shown) in [
            ("100/s", 100, 100, "100/s"),
            ("100/s burst 200", 100, 200, "100/s burst 200"),
            ("1/s burst 1", 1, 1, "1/s"),
            (" 5/s burst  7 ", 5, 7, "5/s burst 7"),
        ] {
            assert_eq!(limit(text), RateLimit { per_second, burst }, "{text}");
            assert_eq!(limit(text).to_string(), shown);
            assert_eq!(limit(shown), limit(text));
        }
        for wrong in
            ["", "100", "/s", "-1/s", "1.5/s", "100/m", "100/s burst", "100/s burst x", "100/sburst 1"]
        {
            assert!(matches!(wrong.parse::<RateLimit>(), Err(RateLimitError::Unreadable(_))), "{wrong}");
        }
        for wrong in ["0/s", "1/s burst 0", "99999999999999999999/s"] {
            assert_eq!(wrong.parse::<RateLimit>(), Err(RateLimitError::OutOfRange), "{wrong}");
        }
    }

    #[test]
    fn a_burst_is_let_through_at_once_and_the_rate_after_it() {
        let (mut bucket, limit, begun) = (Bucket::default(), limit("10/s burst 3"), Instant::now());
        let at = |ms| begun + Duration::from_millis(ms);
        for _ in 0..3 {
            assert_eq!(bucket.take(limit, 1, at(0)), Ok(()));
        }
        let exceeded = Err(Exceeded { retry_after: Duration::from_millis(100) });
        assert_eq!(bucket.take(limit, 1, at(0)), exceeded);
        assert_eq!(bucket.take(limit, 1, at(99)), Err(Exceeded { retry_after: Duration::from_millis(1) }));
        assert_eq!(bucket.take(limit, 1, at(100)), Ok(()));
        assert_eq!(bucket.take(limit, 1, at(100)), exceeded);
        let passed = (0..10_000).filter(|ms| bucket.take(limit, 1, at(200 + ms)).is_ok()).count();
        assert_eq!(passed, 100);
    }

    #[test]
    fn a_refusal_uses_nothing_and_idle_time_no_more_than_a_burst() {
        let (mut bucket, limit, begun) = (Bucket::default(), limit("1/s burst 2"), Instant::now());
        assert_eq!(bucket.take(limit, 2, begun), Ok(()));
        for _ in 0..100 {
            assert!(bucket.take(limit, 1, begun).is_err());
        }
        let later = begun + Duration::from_secs(3_600);
        assert_eq!(bucket.take(limit, 2, later), Ok(()));
        assert!(bucket.take(limit, 1, later).is_err());
    }

    #[test]
    fn more_than_a_burst_passes_a_full_bucket_and_is_paid_for_afterwards() {
        let (mut bucket, limit, begun) = (Bucket::default(), limit("100/s"), Instant::now());
        assert_eq!(bucket.take(limit, 1_000, begun), Ok(()));
        let exceeded = bucket.take(limit, 1, begun).unwrap_err();
        assert_eq!((exceeded.retry_after, exceeded.retry_after_s()), (Duration::from_millis(9_010), 10));
        assert_eq!(bucket.take(limit, 1, begun + exceeded.retry_after), Ok(()));
    }

    #[test]
    fn what_is_charged_is_never_refused_and_bars_even_nothing() {
        let (mut bucket, limit, begun) = (Bucket::default(), limit("100/s"), Instant::now());
        bucket.charge(limit, 150, begun);
        assert_eq!(bucket.take(limit, 0, begun).unwrap_err().retry_after, Duration::from_millis(500));
        bucket.charge(limit, 50, begun);
        assert_eq!(bucket.take(limit, 0, begun).unwrap_err().retry_after, Duration::from_secs(1));
        assert_eq!(bucket.take(limit, 0, begun + Duration::from_secs(1)), Ok(()));
    }

    #[test]
    fn a_clock_that_stands_still_or_huge_amounts_break_nothing() {
        let (mut bucket, limit, begun) = (Bucket::default(), limit("1/s"), Instant::now());
        assert_eq!(bucket.take(limit, u64::MAX, begun), Ok(()));
        let _ = bucket.take(limit, u64::MAX, begun);
        assert_eq!(Bucket::default().take(limit, 0, begun), Ok(()));
    }
}
