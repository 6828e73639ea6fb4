use std::path::PathBuf;

use super::bed::Bed;
use super::rounds::{Base, Rounds, Sample, found};
use crate::block_on;
use crate::http_cost::{Load, Subject};

/// What `serve` does over HTTP, with jobs in memory and in Redis.
pub struct Http {
    /// The program.
    pub serve: PathBuf,
    /// How many connections ask at once.
    pub connections: usize,
}

impl Rounds for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        bed.ask(&["FLUSHALL", "SYNC"]);
        let url = bed.server().url();
        let stores = [("memory", None), ("Redis", Some(url.as_str()))];
        let mut cases: [Vec<Sample>; 2] = Default::default();
        for turn in 0..2 {
            let at = (turn + round) % 2;
            let (store, redis) = stores[at];
            let service = Subject::start(&self.serve, None, redis);
            for load in Load::ALL {
                let before = bed.spent();
                let cost = block_on(service.measure(load, self.connections, jobs));
                let spent = bed.spent().since(before).figures(load.times(jobs) * load.jobs());
                let mut figures = vec![("jobs/s", cost.jobs_a_second), ("µs of serve a job", cost.us)];
                if redis.is_some() {
                    figures.extend(spent.into_iter().filter(|(name, _)| !name.contains("client")));
                }
                cases[at].extend(found(&format!("{store}: {}", load.name()), &Base::None, &figures));
            }
        }
        cases.concat()
    }
}
