use std::time::Duration;

use super::bed::Bed;
use super::burst::Burst;
use super::publishing::Way;
use super::rounds::{Base, Rounds, Sample, found};
use crate::block_on;

/// How long after the others jobs are due that are only published.
pub(super) const LATER: Duration = Duration::from_secs(3_600);

/// Jobs that are all due at one moment, and jobs that are published as fast as can be.
pub struct Bursts;

impl Rounds for Bursts {
    fn name(&self) -> &'static str {
        "burst"
    }

    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        let mut cases: Vec<Vec<Sample>> = vec![Vec::new(); 1 + Way::ALL.len()];
        let turns = cases.len();
        for turn in 0..turns {
            let at = (turn + round) % turns;
            cases[at] = match at.checked_sub(1).map(|way| Way::ALL[way]) {
                None => found(
                    "due → done",
                    &Base::None,
                    &block_on(Burst { queues: 1, jobs, pinged: false }.run(bed)).figures(),
                ),
                Some(way) => found(
                    way.name(),
                    &Base::Case(Way::Together.name().to_owned()),
                    &block_on(way.publish(bed, jobs)),
                ),
            };
        }
        cases.concat()
    }
}
