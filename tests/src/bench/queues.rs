use super::bed::Bed;
use super::burst::Burst;
use super::rounds::{Base, Rounds, Sample, found};
use crate::block_on;

const BASE: &str = "1 queue";

/// The same burst over one queue and over many, by one worker of 100 slots.
pub struct Queues {
    /// How many queues, each to be measured.
    pub counts: Vec<usize>,
}

impl Rounds for Queues {
    fn name(&self) -> &'static str {
        "queues"
    }

    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        let mut cases: Vec<Vec<Sample>> = vec![Vec::new(); self.counts.len()];
        for turn in 0..self.counts.len() {
            let at = (turn + round) % self.counts.len();
            let queues = self.counts[at];
            let case = if queues == 1 { BASE.to_owned() } else { format!("{queues} queues") };
            cases[at] = found(
                &case,
                &Base::Case(BASE.to_owned()),
                &block_on(Burst { queues, jobs, pinged: false }.run(bed)).figures(),
            );
        }
        cases.concat()
    }
}
