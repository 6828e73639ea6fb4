use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::service::limits::Patience;

/// How fast a body comes. Only the time counts for which it is waited for: not what its jobs take, and no pause that the
/// service makes.
pub(crate) struct Pace {
    patience: Duration,
    /// The least bytes a second in the long run, if there are any.
    least: Option<u32>,
    bytes: u64,
    waited: Duration,
}

/// A body does not come, or not fast enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooSlow {
    /// There was no byte for so long.
    Silent(Duration),
    /// So many bytes came within so long.
    Drips(u64, Duration),
}

impl Pace {
    pub(crate) fn new(patience: Patience) -> Pace {
        let Patience { body, min_body_rate, .. } = patience;
        Pace {
            patience: body,
            least: Some(min_body_rate).filter(|least| *least > 0),
            bytes: 0,
            waited: Duration::ZERO,
        }
    }

    /// Waits for what comes next, as long as it may take: the patience without a byte, and all waits together the patience and
    /// what the bytes that came may take.
    pub(crate) async fn keep<T>(&mut self, next: impl Future<Output = T>) -> Result<T, TooSlow> {
        let left = self.least.map(|least| {
            let earned = Duration::from_micros(self.bytes.saturating_mul(1_000_000) / u64::from(least));
            self.patience.saturating_add(earned).saturating_sub(self.waited)
        });
        let begun = Instant::now();
        let came = timeout(left.map_or(self.patience, |left| left.min(self.patience)), next).await;
        self.waited += begun.elapsed();
        came.map_err(|_| match left {
            Some(left) if left < self.patience => TooSlow::Drips(self.bytes, self.waited),
            _ => TooSlow::Silent(self.patience),
        })
    }

    /// So many bytes have come.
    pub(crate) fn came(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooSlow::Silent(patience) => {
                write!(f, "no byte of the body came for {patience:?}: send it without pauses")
            }
            TooSlow::Drips(bytes, waited) => write!(
                f,
                "the body came too slowly, {bytes} bytes in {:.1} s: send it faster, or in parts",
                waited.as_secs_f64()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::sleep;

    use super::*;

    fn pace(patience_ms: u64, min_body_rate: u32) -> Pace {
        Pace::new(Patience { body: Duration::from_millis(patience_ms), min_body_rate, ..Patience::default() })
    }

    #[tokio::test]
    async fn a_body_that_drips_is_given_up_though_it_is_never_silent_for_long() {
        let mut pace = pace(200, 100);
        let slow = loop {
            match pace.keep(sleep(Duration::from_millis(20))).await {
                Ok(()) => pace.came(1),
                Err(slow) => break slow,
            }
        };
        // 200 ms, and 10 ms for each byte, of which each takes 20 ms.
        let TooSlow::Drips(bytes, waited) = slow else { panic!("{slow:?}") };
        assert!(bytes <= 21 && waited >= Duration::from_millis(200 + 10 * bytes), "{slow:?}");
    }

    #[tokio::test]
    async fn a_body_that_came_fast_may_be_slow_for_as_long_as_a_slow_one_would_have_taken() {
        let mut pace = pace(50, 1_000_000_000);
        pace.came(1_000_000_000);
        for _ in 0..10 {
            assert_eq!(pace.keep(sleep(Duration::from_millis(10))).await, Ok(()));
        }
        assert_eq!(pace.keep(pending::<()>()).await, Err(TooSlow::Silent(Duration::from_millis(50))));
    }

    #[tokio::test]
    async fn without_a_least_rate_only_silence_is_too_slow() {
        let mut pace = pace(100, 0);
        for _ in 0..10 {
            assert_eq!(pace.keep(sleep(Duration::from_millis(20))).await, Ok(()));
        }
        assert_eq!(pace.keep(ready(())).await, Ok(()));
        assert_eq!(pace.keep(pending::<()>()).await, Err(TooSlow::Silent(Duration::from_millis(100))));
    }
}
