use std::time::Instant;

use delayline_core::Shards;

use super::bare::Bare;
use super::bed::Bed;
use super::burst::rate;
use super::life::Lives;
use super::rounds::{Base, Rounds, Sample, found};
use crate::Pipeline;

/// What the server does at most: bare commands that keep what the queue keeps, and nothing but answers.
pub struct Limit {
    /// The batches' sizes.
    pub batches: Vec<usize>,
}

impl Rounds for Limit {
    fn name(&self) -> &'static str {
        "limit"
    }

    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        let mut cases: Vec<Vec<Sample>> = vec![Vec::new(); self.batches.len()];
        for turn in 0..self.batches.len() {
            let at = (turn + round) % self.batches.len();
            cases[at] = [lives(bed, self.batches[at], jobs), pings(bed, self.batches[at], jobs)].concat();
        }
        cases.concat()
    }
}

/// Whole lives by bare commands, one after the other.
fn lives(bed: &mut Bed, batch: usize, jobs: usize) -> Vec<Sample> {
    let mut bare = Bare::new(bed.server(), Shards::default(), &format!("limit-{batch}"));
    let batches = jobs.div_ceil(batch);
    let (before, begun) = (bed.spent(), Instant::now());
    for _ in 0..batches {
        bare.publish(batch);
        bare.run(batch);
    }
    let (took, jobs) = (begun.elapsed(), batches * batch);
    let figures = [vec![rate(jobs, took)], bed.spent().since(before).figures(jobs)].concat();
    found(&format!("lives, {batch} at a time"), &Base::None, &figures)
}

/// The shortest command there is.
fn pings(bed: &mut Bed, batch: usize, jobs: usize) -> Vec<Sample> {
    let mut connection = bed.server().connect();
    let batches = jobs.div_ceil(batch);
    let (before, begun) = (bed.spent(), Instant::now());
    for _ in 0..batches {
        let mut pipeline = Pipeline::default();
        (0..batch).for_each(|_| pipeline.words(&["PING"]));
        connection.send_all(&mut pipeline).expect("a living connection");
        for _ in 0..batch {
            connection.receive().expect("a living connection");
        }
    }
    let (took, jobs) = (begun.elapsed(), batches * batch);
    let figures = [vec![rate(jobs, took)], bed.spent().since(before).figures(jobs)].concat();
    found(&format!("PING, {batch} at a time"), &Base::None, &figures)
}
