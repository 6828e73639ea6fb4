//! What the queue costs, and how fast and how punctual it is, on a server of the bench's own. All that is compared takes turns
//! in one run, so that it meets the same machine; ratios and counts are worth more than times.

mod against;
mod bare;
mod bed;
mod burst;
mod bursts;
mod clients;
mod life;
mod pace;
mod publishing;
mod queues;
mod report;
mod rounds;
mod scripts;
mod usage;

use std::path::PathBuf;

pub use bursts::Bursts;
pub use clients::Clients;
pub use life::Life;
pub use pace::Pace;
pub use queues::Queues;
pub use report::{Ratio, Report, Row};

use against::Against;
use bed::Bed;
use rounds::Rounds;

/// How something is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many rounds count.
    pub rounds: usize,
    /// How many there are at most, if others use the CPUs.
    pub most_rounds: usize,
    /// How many CPUs others may use in a round that counts, as long as there are not most.
    pub quiet: f64,
    /// How many jobs a round, for each that is compared.
    pub jobs: usize,
    /// Whether a tenth of a round comes before all, which does not count.
    pub warms_up: bool,
    /// The server's program; the usual one if `None`.
    pub server: Option<PathBuf>,
}

/// What can be measured.
pub enum Bench {
    /// Redis's CPU for whole lives, without an engine.
    Life(Life),
    /// Jobs that are due at once, and jobs that are published.
    Burst(Bursts),
    /// A steady rate.
    Pace(Pace),
    /// A burst over one queue and over many.
    Queues(Queues),
    /// One job among idle clients.
    Clients(Clients),
}

impl Bench {
    /// Measures.
    ///
    /// # Panics
    /// If a server cannot be had, or answers otherwise than it should.
    pub fn run(self, options: &Options) -> Report {
        rounds::run(&mut *self.rounds(), &mut Bed::start(options.server.as_ref()), options)
    }

    /// Measures by turns with another commit's program, which is asked for the same with these words. Each is a process of
    /// its own for every round.
    ///
    /// # Panics
    /// If a program cannot be run, or prints something else than a report.
    pub fn run_against(self, program: &std::path::Path, words: Vec<String>, options: &Options) -> Report {
        let mut rounds = Against::new(self.rounds().name(), words, program);
        let options = Options { warms_up: false, ..options.clone() };
        rounds::run(&mut rounds, &mut Bed::start(options.server.as_ref()), &options)
    }

    fn rounds(self) -> Box<dyn Rounds> {
        match self {
            Bench::Life(life) => Box::new(life),
            Bench::Burst(bursts) => Box::new(bursts),
            Bench::Pace(pace) => Box::new(pace),
            Bench::Queues(queues) => Box::new(queues),
            Bench::Clients(clients) => Box::new(clients),
        }
    }
}
