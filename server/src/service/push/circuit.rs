use std::time::{Duration, Instant};

/// After how many failures in a row a target is held back.
pub(super) const FAILURES: u32 = 5;
/// How long it is held back at first; each probe that fails doubles it.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
/// After so many doublings the longest is reached.
const DOUBLINGS: u32 = 9;

/// Whether a target is sent requests, by how its last ones ended.
///
/// It opens after [`FAILURES`] failures in a row: nothing is sent for a time that grows. Then one request is let through, a
/// probe; the circuit closes when that succeeds, and opens for longer when it fails.
#[derive(Debug)]
pub(super) struct Circuit {
    state: State,
    /// In a row, while it is closed.
    failures: u32,
    /// How often it has opened in a row.
    opened: u32,
    /// Grows with each change of state: requests that began before it say nothing of now.
    epoch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Open {
        until: Instant,
    },
    /// A probe is on its way.
    Probing,
}

/// A request that was let through.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pass(u64);

/// Why a request is not let through now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shut {
    Until(Instant),
    /// Until the probe has ended.
    Probing,
}

/// What a request tells about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It answers.
    Alive,
    /// It does not, or says that it is broken.
    Failed,
    /// The request was not sent, or given up for another reason.
    Unknown,
}

impl Circuit {
    pub(super) fn new() -> Circuit {
        Circuit { state: State::Closed, failures: 0, opened: 0, epoch: 0 }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Whether a request would be let through now.
    pub(super) fn check(&self, now: Instant) -> Result<(), Shut> {
        match self.state {
            State::Closed => Ok(()),
            State::Open { until } if until <= now => Ok(()),
            State::Open { until } => Err(Shut::Until(until)),
            State::Probing => Err(Shut::Probing),
        }
    }

    /// Whether only one request, a probe, would be.
    pub(super) fn is_to_probe(&self) -> bool {
        self.state != State::Closed
    }

    /// Lets a request through, or not.
    pub(super) fn enter(&mut self, now: Instant) -> Result<Pass, Shut> {
        self.check(now)?;
        if self.is_to_probe() {
            self.change(State::Probing);
        }
        Ok(Pass(self.epoch))
    }

    /// A request that was let through has ended; `random` is a number of 0 to 1. Answers whether the state has changed.
    pub(super) fn end(&mut self, pass: &Pass, health: Health, now: Instant, random: f64) -> bool {
        if pass.0 != self.epoch {
            return false;
        }
        match (self.state, health) {
            (State::Closed, Health::Alive) => self.failures = 0,
            (State::Closed, Health::Failed) => {
                self.failures += 1;
                if self.failures >= FAILURES {
                    self.open(now, random);
                    return true;
                }
            }
            (State::Probing, Health::Alive) => {
                (self.failures, self.opened) = (0, 0);
                self.change(State::Closed);
                return true;
            }
            (State::Probing, Health::Failed) => {
                self.open(now, random);
                return true;
            }
            (State::Probing, Health::Unknown) => {
                self.change(State::Open { until: now });
                return true;
            }
            (State::Closed | State::Open { .. }, _) => {}
        }
        false
    }

    fn open(&mut self, now: Instant, random: f64) {
        let longest = SHORTEST.saturating_mul(1 << self.opened.min(DOUBLINGS)).min(LONGEST);
        self.opened += 1;
        // Between 80 and 100 %, so that several processes do not probe together.
        let until = now + longest.mul_f64(0.8 + 0.2 * random.clamp(0.0, 1.0));
        self.change(State::Open { until });
    }

    fn change(&mut self, state: State) {
        self.state = state;
        self.epoch += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn fail(circuit: &mut Circuit, now: Instant) -> bool {
        let pass = circuit.enter(now).unwrap();
        circuit.end(&pass, Health::Failed, now, 1.0)
    }

    fn opened() -> (Circuit, Instant) {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        (1..FAILURES).for_each(|_| assert!(!fail(&mut circuit, now)));
        assert!(fail(&mut circuit, now));
        (circuit, now)
    }

    #[test]
    fn it_opens_after_failures_in_a_row_only() {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        for _ in 0..10 {
            (1..FAILURES).for_each(|_| assert!(!fail(&mut circuit, now)));
            let pass = circuit.enter(now).unwrap();
            assert!(!circuit.end(&pass, Health::Alive, now, 1.0));
        }
        let (circuit, now) = opened();
        assert_eq!(circuit.check(now), Err(Shut::Until(now + SECOND)));
        assert_eq!(circuit.check(now + SECOND), Ok(()));
    }

    #[test]
    fn one_probe_at_a_time_and_each_failure_doubles_the_wait_up_to_five_minutes() {
        let (mut circuit, mut now) = opened();
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300] {
            assert_eq!(circuit.state(), State::Open { until: now + seconds * SECOND });
            now += seconds * SECOND;
            let probe = circuit.enter(now).unwrap();
            assert_eq!(circuit.enter(now), Err(Shut::Probing));
            assert!(circuit.end(&probe, Health::Failed, now, 1.0));
        }
        now += 300 * SECOND;
        let probe = circuit.enter(now).unwrap();
        assert!(circuit.end(&probe, Health::Alive, now, 1.0));
        assert_eq!(circuit.state(), State::Closed);
        (1..FAILURES).for_each(|_| assert!(!fail(&mut circuit, now)));
        assert!(fail(&mut circuit, now));
        assert_eq!(circuit.state(), State::Open { until: now + SECOND });
    }

    #[test]
    fn requests_from_before_say_nothing_of_now() {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        let before: Vec<Pass> = (0..200).map(|_| circuit.enter(now).unwrap()).collect();
        let changes = before.iter().filter(|pass| circuit.end(pass, Health::Failed, now, 1.0)).count();
        assert_eq!(changes, 1);
        assert_eq!(circuit.state(), State::Open { until: now + SECOND });
        let probe = circuit.enter(now + SECOND).unwrap();
        assert!(!circuit.end(&before[0], Health::Alive, now + SECOND, 1.0));
        assert_eq!(circuit.state(), State::Probing);
        assert!(circuit.end(&probe, Health::Alive, now + SECOND, 1.0));
        assert!(!circuit.end(&before[0], Health::Failed, now + SECOND, 1.0));
    }

    #[test]
    fn a_probe_that_was_not_sent_leaves_room_for_another() {
        let (mut circuit, now) = opened();
        let probe = circuit.enter(now + SECOND).unwrap();
        assert!(circuit.end(&probe, Health::Unknown, now + SECOND, 1.0));
        let probe = circuit.enter(now + SECOND).unwrap();
        assert!(circuit.end(&probe, Health::Failed, now + SECOND, 1.0));
        assert_eq!(circuit.state(), State::Open { until: now + 3 * SECOND });
    }

    #[test]
    fn the_wait_is_a_little_shorter_by_chance() {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        for _ in 0..FAILURES {
            let pass = circuit.enter(now).unwrap();
            circuit.end(&pass, Health::Failed, now, 0.0);
        }
        assert_eq!(circuit.state(), State::Open { until: now + Duration::from_millis(800) });
    }
}
