use serde::{Deserialize, Serialize};

use crate::{Millis, UnixMicros, UnixMs};

const DRIFT_PPM: u64 = 500;
const DUE_DRIFT_PPM: u64 = 100;
const ENGINE_QUANTUM_US: i128 = 1000;
const SLACK_US: i128 = 50_000;

/// What the engine knows of Redis's clock: an interval that certainly holds the difference between Redis's `TIME` and
/// the engine's own clock, drawn from when requests left, when replies came, and the time each reply carried.
///
/// Network delay, however uneven, only widens the interval; drift widens it with age. All arithmetic is in whole
/// microseconds. Intersecting such intervals is K. Marzullo's and S. Owicki's way of keeping time (1983).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClockModel {
    redis_quantum_us: i128,
    engine_quantum_us: i128,
    drift_ppm: u64,
    due_drift_ppm: u64,
    known: Option<Known>,
}

/// What one reply taught a [`ClockModel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// The first reply: from now on the model answers.
    First,
    /// The reply fits what was known, give or take 50 ms.
    Agrees,
    /// A clock stepped: a suspended machine, a correction by NTP, a failover to a node with another clock. The model
    /// has started afresh from this reply; whatever was computed from it before must be computed again.
    Stepped {
        /// The most, in microseconds, that Redis can have gone forward against the engine; negative if it went back.
        /// Leases granted before a step forward end that much earlier by the engine's clock.
        forward_us: i64,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Known {
    /// Bounds of (Redis − engine) in microseconds, at `at`.
    low: i128,
    high: i128,
    at: Millis,
}

impl Default for ClockModel {
    fn default() -> ClockModel {
        ClockModel::new(1)
    }
}

impl ClockModel {
    /// A model that knows nothing yet. `redis_quantum_us` is the resolution of the `TIME` it will be shown: 1 for
    /// Redis, 1,000 for a store that keeps milliseconds.
    pub fn new(redis_quantum_us: u32) -> ClockModel {
        ClockModel {
            redis_quantum_us: i128::from(redis_quantum_us.max(1)),
            engine_quantum_us: ENGINE_QUANTUM_US,
            drift_ppm: DRIFT_PPM,
            due_drift_ppm: DUE_DRIFT_PPM,
            known: None,
        }
    }

    /// A model for an engine whose clock is the store's, in whole milliseconds: a test's clock, a simulator's.
    pub fn same() -> ClockModel {
        ClockModel { redis_quantum_us: 1, engine_quantum_us: 1, drift_ppm: 0, due_drift_ppm: 0, known: None }
    }

    /// Takes in one reply: `sent` is the time under which the request was polled, `received` the time of the reply,
    /// `redis` the `TIME` it carried. Readings of the engine's clock must not go back.
    pub fn sample(&mut self, sent: Millis, received: Millis, redis: UnixMicros) -> Sample {
        let heard = self.heard(sent.min(received), received, redis);
        let Some(known) = self.known.replace(heard) else {
            return Sample::First;
        };
        let expected = known.widened(received, self.drift_ppm);
        let low = heard.low.max(expected.low);
        let high = heard.high.min(expected.high);
        if low <= high {
            self.known = Some(Known { low, high, at: expected.at });
            Sample::Agrees
        } else if low - high <= SLACK_US {
            Sample::Agrees
        } else {
            let forward = (heard.high - expected.low).clamp(i128::from(i64::MIN), i128::from(i64::MAX));
            Sample::Stepped { forward_us: i64::try_from(forward).unwrap_or_default() }
        }
    }

    /// The earliest reading of the engine's clock, not before `now`, at which a request may leave and not reach Redis
    /// before `due`; `None` before the first sample.
    ///
    /// Allows 100 ppm of drift since the last sample, the wait included. A clock that drifts more costs an ask that
    /// finds nothing, whose reply then carries the true time.
    pub fn ask_at(&self, now: Millis, due: UnixMs) -> Option<Millis> {
        let known = self.known?;
        let wait = i128::from(due.0) * 1000 - known.low - us(known.at);
        let wait = u64::try_from(wait.max(0)).unwrap_or(u64::MAX);
        let drift = wait.saturating_mul(self.due_drift_ppm).div_ceil(1_000_000 - self.due_drift_ppm);
        Some(now.max(known.at + wait.saturating_add(drift).div_ceil(1000)))
    }

    /// The earliest and the latest that Redis's clock can stand at when the engine's reads `now`, allowing 500 ppm of
    /// drift since the last sample; `None` before the first.
    pub fn redis_now(&self, now: Millis) -> Option<(UnixMicros, UnixMicros)> {
        let known = self.known?.widened(now, self.drift_ppm);
        let earliest = us(now) + known.low;
        let latest = us(now) + self.engine_quantum_us - 1 + known.high;
        Some((micros(earliest), micros(latest)))
    }

    /// The reading of the engine's clock at which a lease of `lease_ms` must be taken to have ended, if the request
    /// that got it was first sent at `first_sent`: never after Redis ends it, up to 500 ppm of drift.
    pub fn lease_end(first_sent: Millis, lease_ms: u64) -> Millis {
        let lost = lease_ms.saturating_mul(DRIFT_PPM).div_ceil(1_000_000).saturating_add(1);
        first_sent + lease_ms.saturating_sub(lost)
    }

    /// Milliseconds since the last sample; `None` before the first.
    pub fn age(&self, now: Millis) -> Option<u64> {
        self.known.map(|known| now.since(known.at))
    }

    fn heard(&self, sent: Millis, received: Millis, redis: UnixMicros) -> Known {
        let time = i128::from(redis.0);
        Known {
            low: time - (us(received) + self.engine_quantum_us - 1),
            high: time + self.redis_quantum_us - 1 - us(sent) + drift(received.since(sent), self.drift_ppm),
            at: received,
        }
    }
}

impl Known {
    fn widened(self, now: Millis, ppm: u64) -> Known {
        let drift = drift(now.since(self.at), ppm);
        Known { low: self.low - drift, high: self.high + drift, at: self.at.max(now) }
    }
}

fn drift(ms: u64, ppm: u64) -> i128 {
    let (seconds, rest) = (ms / 1000, ms % 1000);
    i128::from(seconds) * i128::from(ppm) + i128::from(rest.saturating_mul(ppm).div_ceil(1000))
}

fn us(time: Millis) -> i128 {
    i128::from(time.0) * 1000
}

fn micros(time: i128) -> UnixMicros {
    UnixMicros(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH_US: u64 = 1_700_000_000_000_000;

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) % bound
        }
    }

    /// Two clocks over one true time in µs: Redis's is true, the engine's drifts.
    struct World {
        true_us: u64,
        drift_ppm: i64,
        redis_quantum_us: u64,
        step_us: i64,
    }

    impl World {
        fn engine_at(&self, true_us: u64) -> Millis {
            let drifted = i128::from(true_us) * i128::from(1_000_000 + self.drift_ppm) / 1_000_000;
            Millis(u64::try_from(drifted / 1000).unwrap())
        }

        fn redis(&self) -> UnixMicros {
            let us = (EPOCH_US + self.true_us).saturating_add_signed(self.step_us);
            UnixMicros(us / self.redis_quantum_us * self.redis_quantum_us)
        }

        fn engine(&self) -> Millis {
            self.engine_at(self.true_us)
        }

        /// Waits until the engine's clock reads `until`.
        fn sleep(&mut self, until: Millis) {
            let guess = i128::from(until.0) * 1_000_000_000 / i128::from(1_000_000 + self.drift_ppm);
            self.true_us = self.true_us.max(u64::try_from(guess).unwrap().saturating_sub(2));
            while self.engine() < until {
                self.true_us += 1;
            }
        }
    }

    /// Asks 4,000 times on paths up to `path_us` each way; counts early asks and reported steps, and the mean lateness.
    fn simulate(seed: u64, drift_ppm: i64, redis_quantum_us: u32, path_us: u64) -> (u32, u32, u64) {
        let mut random = Random(seed);
        let quantum = u64::from(redis_quantum_us);
        let mut world = World { true_us: 9_000_000, drift_ppm, redis_quantum_us: quantum, step_us: 0 };
        let mut model = ClockModel::new(redis_quantum_us);
        let (mut early, mut steps, mut late_us) = (0, 0, 0);
        let mut due = UnixMs(0);
        for _ in 0..4_000 {
            let sent = world.engine();
            world.true_us += 50 + random.below(path_us);
            let redis = world.redis();
            early += u32::from(redis.floor_ms() < due);
            late_us += redis.0.saturating_sub(due.0 * 1000).min(10_000_000);
            world.true_us += 50 + random.below(path_us / 40 + 1);
            steps += u32::from(matches!(model.sample(sent, world.engine(), redis), Sample::Stepped { .. }));
            let now = world.engine();
            let (earliest, latest) = model.redis_now(now).unwrap();
            let truth = EPOCH_US + world.true_us;
            assert!(earliest.0 <= truth && truth <= latest.0, "{earliest} <= {truth} <= {latest}");
            due = redis.ceil_ms() + random.below(10_000);
            let at = model.ask_at(now, due).unwrap();
            world.sleep(at);
        }
        (early, steps, late_us / 4_000)
    }

    #[test]
    fn never_asks_early_and_sees_no_step_where_there_is_none() {
        for (seed, drift_ppm) in [-99, -40, 0, 7, 60, 99].into_iter().enumerate() {
            for (quantum, path_us) in [(1, 300), (1, 40_000), (1000, 300), (1000, 40_000)] {
                let (early, steps, late_us) = simulate(seed as u64, drift_ppm, quantum, path_us);
                assert_eq!((early, steps), (0, 0), "drift {drift_ppm}, quantum {quantum}, path {path_us}");
                assert!(late_us < 5_000 + 2 * path_us, "{late_us} µs late on the mean");
            }
        }
    }

    #[test]
    fn knows_nothing_before_the_first_sample() {
        let mut model = ClockModel::default();
        assert_eq!(model.ask_at(Millis(1), UnixMs(2)), None);
        assert_eq!(model.redis_now(Millis(1)), None);
        assert_eq!(model.age(Millis(1)), None);
        assert_eq!(model.sample(Millis(1), Millis(3), UnixMicros(EPOCH_US)), Sample::First);
        assert_eq!(model.age(Millis(10)), Some(7));
    }

    #[test]
    fn a_step_is_seen_and_measured_either_way() {
        for step_ms in [100i64, 3_600_000, -100, -3_600_000] {
            let mut model = ClockModel::default();
            model.sample(Millis(1000), Millis(1001), UnixMicros(EPOCH_US));
            let stepped = EPOCH_US.saturating_add_signed(step_ms * 1000) + 1_000_000;
            let sample = model.sample(Millis(2000), Millis(2001), UnixMicros(stepped));
            let Sample::Stepped { forward_us } = sample else { panic!("{sample:?}") };
            let over = forward_us - step_ms * 1000;
            assert!((0..5_000).contains(&over), "{forward_us} for {step_ms} ms");
            let (earliest, latest) = model.redis_now(Millis(2001)).unwrap();
            assert!(earliest.0 <= stepped && stepped <= latest.0 && latest.0 - earliest.0 < 5_000);
            assert_eq!(model.sample(Millis(2001), Millis(2002), UnixMicros(stepped + 900)), Sample::Agrees);
        }
    }

    #[test]
    fn a_small_breach_of_the_drift_bound_is_not_a_step() {
        let mut model = ClockModel::default();
        model.sample(Millis(1000), Millis(1000), UnixMicros(EPOCH_US));
        let late = UnixMicros(EPOCH_US + 1_040_000);
        assert_eq!(model.sample(Millis(2000), Millis(2000), late), Sample::Agrees);
        let (earliest, latest) = model.redis_now(Millis(2000)).unwrap();
        assert!(earliest <= late && late <= latest);
    }

    #[test]
    fn asks_at_once_for_what_is_overdue_and_rounds_up_otherwise() {
        let mut model = ClockModel::default();
        model.sample(Millis(1000), Millis(1000), UnixMicros(5_000_000));
        assert_eq!(model.ask_at(Millis(1000), UnixMs(4_999)), Some(Millis(1000)));
        assert_eq!(model.ask_at(Millis(1000), UnixMs(5_000)), Some(Millis(1001)));
        assert_eq!(model.ask_at(Millis(1000), UnixMs(15_000)), Some(Millis(11_002)));
        assert_eq!(model.ask_at(Millis(20_000), UnixMs(15_000)), Some(Millis(20_000)));
    }

    #[test]
    fn a_clock_that_is_the_same_is_known_to_the_millisecond() {
        let mut model = ClockModel::same();
        model.sample(Millis(1000), Millis(1000), UnixMicros(5_000_000));
        assert_eq!(model.ask_at(Millis(1000), UnixMs(5_000)), Some(Millis(1000)));
        let month = 30 * 86_400_000;
        assert_eq!(model.ask_at(Millis(1000), UnixMs(5_000 + month)), Some(Millis(1000 + month)));
        let then = UnixMicros((5_000 + month) * 1000);
        assert_eq!(model.redis_now(Millis(1000 + month)), Some((then, then)));
    }

    #[test]
    fn a_slow_reply_may_have_drifted_on_its_way() {
        let mut model = ClockModel::default();
        model.sample(Millis(0), Millis(10_000), UnixMicros(EPOCH_US));
        let bounds = (UnixMicros(EPOCH_US - 999), UnixMicros(EPOCH_US + 10_000_000 + 999 + 5_000));
        assert_eq!(model.redis_now(Millis(10_000)), Some(bounds));
    }

    #[test]
    fn a_lease_ends_before_redis_ends_it() {
        assert_eq!(ClockModel::lease_end(Millis(100), 30_000), Millis(100 + 30_000 - 15 - 1));
        assert_eq!(ClockModel::lease_end(Millis(100), 0), Millis(100));
        assert_eq!(ClockModel::lease_end(Millis(u64::MAX), u64::MAX), Millis(u64::MAX));
    }

    #[test]
    fn absurd_clocks_do_no_harm() {
        let ends = [0, 1, u64::MAX / 1000, u64::MAX];
        for sent in ends {
            for received in ends {
                for redis in ends {
                    let mut model = ClockModel::default();
                    model.sample(Millis(5), Millis(5), UnixMicros(EPOCH_US));
                    model.sample(Millis(sent), Millis(received), UnixMicros(redis));
                    let _ = model.redis_now(Millis(sent));
                    assert!(model.ask_at(Millis(sent), UnixMs(redis)) >= Some(Millis(sent)));
                }
            }
        }
    }
}
