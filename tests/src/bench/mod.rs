//! What the queue costs, and how fast and how punctual it is, on a server of the bench's own. All that is compared takes turns
//! in one run, so that it meets the same machine; ratios and counts are worth more than times.

mod against;
mod bare;
mod bed;
mod burst;
mod bursts;
mod clients;
mod http;
mod idle;
mod life;
mod limit;
mod pace;
mod peer;
mod pending;
mod pings;
mod plot;
mod publishing;
mod queues;
mod report;
mod rounds;
mod scripts;
mod startup;
mod usage;

use std::path::{Path, PathBuf};

pub use bursts::Bursts;
pub use clients::Clients;
pub use http::Http;
pub use idle::Idle;
pub use life::Life;
pub use limit::Limit;
pub use pace::Pace;
pub use pending::Pending;
pub use plot::draw;
pub use queues::Queues;
pub use report::{Ratio, Report, Row};
pub use startup::Startup;

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
pub struct Bench(Box<dyn Rounds>);

impl Bench {
    /// Measures.
    ///
    /// # Panics
    /// If a server cannot be had, or answers otherwise than it should.
    pub fn run(mut self, options: &Options) -> Report {
        rounds::run(&mut *self.0, &mut Bed::start(options.server.as_ref()), options)
    }

    /// Measures by turns with another commit's program, which is asked for the same with these words. Each is a process of
    /// its own for every round.
    ///
    /// # Panics
    /// If a program cannot be run, or prints something else than a report.
    pub fn run_against(&self, program: &Path, words: Vec<String>, options: &Options) -> Report {
        let mut rounds = Against::new(self.0.name(), words, program);
        let options = Options { warms_up: false, ..options.clone() };
        rounds::run(&mut rounds, &mut Bed::start(options.server.as_ref()), &options)
    }
}

macro_rules! benches {
    ($($bench:ty),*) => {
        $(impl From<$bench> for Bench {
            fn from(bench: $bench) -> Bench {
                Bench(Box::new(bench))
            }
        })*
    };
}

benches!(Bursts, Clients, Http, Idle, Life, Limit, Pace, Pending, Queues, Startup);
