use std::time::{Duration, Instant};

/// A turn that was missed is made up for if it was missed by no more than this.
const CATCHING_UP: Duration = Duration::from_millis(100);

/// Spreads requests evenly, so that there are no more than a rate allows.
///
/// Own code, since no limiter of the kept crates says how many turns come within a time without spending them.
#[derive(Debug, Default)]
pub(super) struct Turns {
    next: Option<Instant>,
}

impl Turns {
    /// When the next turn is.
    pub(super) fn next(&self, now: Instant) -> Instant {
        self.next.map_or(now, |next| next.max(now))
    }

    /// How many turns there are from now on within `window`, one each `interval`.
    pub(super) fn within(&self, window: Duration, interval: Duration, now: Instant) -> u32 {
        let left = window.saturating_sub(self.next(now).saturating_duration_since(now));
        if left.is_zero() {
            return 0;
        }
        let turns = left.as_nanos().div_ceil(interval.as_nanos().max(1));
        u32::try_from(turns).unwrap_or(u32::MAX)
    }

    /// Takes the next turn, and answers when it is; the one after that is `interval` later.
    pub(super) fn take(&mut self, interval: Duration, now: Instant) -> Instant {
        let earliest = now.checked_sub(CATCHING_UP).unwrap_or(now);
        let turn = self.next.map_or(now, |next| next.max(earliest));
        self.next = Some(turn + interval);
        turn.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn turns_are_an_interval_apart() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        for n in 0..5 {
            assert_eq!(turns.take(10 * MS, now), now + n * 10 * MS);
        }
        assert_eq!(turns.next(now), now + 50 * MS);
        assert_eq!(turns.next(now + 60 * MS), now + 60 * MS);
    }

    #[test]
    fn says_how_many_turns_there_are() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        assert_eq!(turns.within(100 * MS, 10 * MS, now), 10);
        assert_eq!(turns.within(100 * MS, 1_000 * MS, now), 1);
        turns.take(1_000 * MS, now);
        assert_eq!(turns.within(100 * MS, 1_000 * MS, now), 0);
        assert_eq!(turns.within(100 * MS, 1_000 * MS, now + 950 * MS), 1);
    }

    #[test]
    fn a_little_is_made_up_for_and_no_burst_follows_a_pause() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        turns.take(10 * MS, now);
        let late = now + 35 * MS;
        let soon = (0..4).map(|_| turns.take(10 * MS, late)).collect::<Vec<_>>();
        assert_eq!(soon, [late, late, late, now + 40 * MS]);
        let later = now + Duration::from_secs(60);
        let at_once = (0..100).filter(|_| turns.take(10 * MS, later) == later).count();
        assert_eq!(at_once, 11);
    }
}
