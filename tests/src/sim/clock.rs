use delayline_core::Millis;

/// A clock that is wrong: by an offset, by its pace, and by jumps.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    since_us: u64,
    shown_us: u64,
    drift_ppm: i64,
}

impl Clock {
    pub(super) fn new(offset_ms: u64, drift_ppm: i64) -> Clock {
        Clock { since_us: 0, shown_us: offset_ms * 1000, drift_ppm }
    }

    /// What it shows at this true time.
    pub(super) fn at(&self, us: u64) -> Millis {
        Millis(self.micros(us) / 1000)
    }

    /// The first true time, not before `us`, at which it shows `shown`.
    pub(super) fn when(&self, shown: Millis, us: u64) -> u64 {
        let shown_us = shown.0.saturating_mul(1000);
        let ahead_us = shown_us.saturating_sub(self.shown_us);
        let pace = u64::try_from(1_000_000 + self.drift_ppm).unwrap_or(1_000_000);
        let mut at = self.since_us.saturating_add(muldiv(ahead_us, 1_000_000, pace)).max(us);
        while self.at(at) < shown {
            at += 1;
        }
        at
    }

    /// From this true time on it shows so much more.
    pub(super) fn jump(&mut self, us: u64, by_us: i64) {
        let shown = self.micros(us);
        (self.since_us, self.shown_us) = (us, shown.saturating_add_signed(by_us));
    }

    fn micros(&self, us: u64) -> u64 {
        let pace = u64::try_from(1_000_000 + self.drift_ppm).unwrap_or(1_000_000);
        self.shown_us + muldiv(us.saturating_sub(self.since_us), pace, 1_000_000)
    }
}

fn muldiv(value: u64, by: u64, divisor: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(by) / u128::from(divisor)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_from_its_first_microsecond() {
        for drift in [-90, -1, 0, 1, 90, 500] {
            let mut clock = Clock::new(100_000, drift);
            clock.jump(3_000_000, -1_234_567);
            for us in [3_000_000, 3_000_001, 17_654_321] {
                for ms in [0, 1, 999, 60_000] {
                    let shown = Millis(clock.at(us).0 + ms);
                    let at = clock.when(shown, us);
                    assert!(clock.at(at) >= shown);
                    assert!(at == us || clock.at(at - 1) < shown, "{drift} {us} {ms}");
                }
            }
        }
    }
}
