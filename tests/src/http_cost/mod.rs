//! What a request costs `serve` in CPU time, with jobs in memory: of one program, or of two that take turns, so that both
//! meet the same machine.

mod load;
mod report;
mod subject;

use std::path::PathBuf;

pub use load::Load;
pub use report::{Figure, Interval, Report};

pub(crate) use subject::Subject;

use crate::block_on;

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program whose `serve` is measured.
    pub serve: PathBuf,
    /// The one that it is compared to.
    pub against: Option<PathBuf>,
    /// How many connections ask at once, each the next thing once it has its answer.
    pub connections: usize,
    /// How many jobs by themselves are published, taken and acknowledged a round; ten times as many go in batches.
    pub jobs: usize,
    /// The fewest rounds and the most.
    pub rounds: (usize, usize),
    /// Which part of a figure its uncertainty may be, for the rounds to end before there are most.
    pub precision: f64,
    /// The CPUs that the services have, as `taskset -c` reads them; all, if that is not said.
    pub cpus: Option<String>,
}

/// Measures until the figures are as certain as wanted, or the rounds are used up. The first round only warms up.
///
/// # Panics
/// If a service does not start, or answers something else than it should.
pub fn run(options: &Options) -> Report {
    let start = |program: &PathBuf| Subject::start(program, options.cpus.as_deref(), None);
    let (serve, against) = (start(&options.serve), options.against.as_ref().map(start));
    let subjects: Vec<&Subject> = [&serve].into_iter().chain(&against).collect();
    let mut report = Report::new(against.is_some());
    for round in 0..=options.rounds.1 {
        for load in Load::ALL {
            let mut costs = vec![0.0; subjects.len()];
            // Whoever comes second finds the caches as the other left them: they take turns at that.
            let swaps = round % 2;
            for turn in 0..subjects.len() {
                let which = (turn + swaps) % subjects.len();
                costs[which] = block_on(subjects[which].measure(load, options.connections, options.jobs)).us;
            }
            if round > 0 {
                report.add(load, &costs);
            }
        }
        if round >= options.rounds.0 && report.is_within(options.precision) {
            break;
        }
    }
    report
}
