use std::path::PathBuf;

use delayline_core::Shards;

use super::bare::Bare;
use super::bed::Bed;
use super::rounds::{Base, Rounds, Sample};
use super::scripts::Scripts;

/// The jobs that wait behind those that are measured.
const BACKLOG: usize = 2_000;

/// Whole lives of jobs of 100 bytes: published due, granted, acknowledged, in batches of one size. No engine is in between:
/// what is counted is Redis's alone, with what it takes to read a request and to write an answer.
pub struct Life {
    /// The batches' sizes.
    pub batches: Vec<usize>,
    /// The folder `lua` of another commit, whose scripts take turns with these.
    pub against: Option<PathBuf>,
    /// For each size those who take turns, once they are made.
    all: Vec<Vec<Measured>>,
}

/// Whoever can have jobs live.
pub(super) trait Lives {
    /// Publishes so many jobs that are due.
    fn publish(&mut self, count: usize);
    /// Grants so many, and acknowledges them.
    fn run(&mut self, count: usize);
}

struct Measured {
    of: &'static str,
    lives: Box<dyn Lives>,
}

impl Life {
    /// Batches of these sizes.
    pub fn new(batches: Vec<usize>, against: Option<PathBuf>) -> Life {
        Life { batches, against, all: Vec::new() }
    }

    /// Those who take turns at a size.
    fn measured(&self, bed: &Bed, batch: usize) -> Vec<Measured> {
        let server = bed.server();
        let name = |of: &str| format!("{of}-{batch}");
        let mut all = vec![Measured::new("this", Scripts::new(server, &name("this"), None))];
        if let Some(folder) = &self.against {
            all.push(Measured::new("against", Scripts::new(server, &name("against"), Some(folder))));
        }
        all.push(Measured::new("bare commands", Bare::new(server, Shards::default(), &name("bare"))));
        for measured in &mut all {
            (0..BACKLOG / 100).for_each(|_| measured.lives.publish(100));
        }
        all
    }
}

impl Rounds for Life {
    fn name(&self) -> &'static str {
        "life"
    }

    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        if self.all.is_empty() {
            self.all = self.batches.iter().map(|batch| self.measured(bed, *batch)).collect();
        }
        let mut found = Vec::new();
        for (&batch, all) in self.batches.iter().zip(&mut self.all) {
            let turns = all.len();
            let mut cases: Vec<Vec<Sample>> = vec![Vec::new(); turns];
            for turn in 0..turns {
                let at = (turn + round) % turns;
                cases[at] = all[at].live(batch, jobs.div_ceil(batch), bed);
            }
            found.extend(cases.concat());
        }
        found
    }
}

impl Measured {
    fn new(of: &'static str, lives: impl Lives + 'static) -> Measured {
        Measured { of, lives: Box::new(lives) }
    }

    /// Has batches live, and answers what a job of them cost.
    fn live(&mut self, batch: usize, batches: usize, bed: &mut Bed) -> Vec<Sample> {
        let before = bed.spent();
        for _ in 0..batches {
            self.lives.publish(batch);
            self.lives.run(batch);
        }
        let spent = bed.spent().since(before);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (jobs, calls) = ((batch * batches) as f64, spent.calls as f64);
        let sample = |(figure, value): (&str, f64)| {
            let case = if batch == 1 { "alone".to_owned() } else { format!("batches of {batch}") };
            Sample { case, of: self.of.to_owned(), figure: figure.to_owned(), value, base: Base::Of("this") }
        };
        [("µs of Redis a job", spent.redis_us / jobs), ("calls a job", calls / jobs)].map(sample).into()
    }
}
