use std::time::Duration;

use super::bed::Bed;
use super::burst::Burst;
use super::peer::Peer;
use super::publishing::Way;
use super::rounds::{Base, Rounds, Sample, found};
use crate::block_on;

/// How long after the others jobs are due that are only published.
pub(super) const LATER: Duration = Duration::from_secs(3_600);
const CASE: &str = "due → done";

/// Jobs that are all due at one moment, and jobs that are published as fast as can be.
pub struct Bursts {
    peers: Vec<Peer>,
}

impl Bursts {
    /// With these peers, which are made ready at once.
    ///
    /// # Panics
    /// If one cannot be.
    pub fn new(peers: &[String]) -> Bursts {
        Bursts { peers: peers.iter().map(|name| Peer::new(name)).collect() }
    }
}

impl Rounds for Bursts {
    fn name(&self) -> &'static str {
        "burst"
    }

    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        let ways = Way::ALL.len();
        let turns = 1 + ways + self.peers.len();
        let mut cases: Vec<Vec<Sample>> = vec![Vec::new(); turns];
        for turn in 0..turns {
            let at = (turn + round) % turns;
            cases[at] = if at == 0 {
                let burned = block_on(Burst { queues: 1, jobs, pinged: false }.run(bed));
                found(CASE, &Base::None, &burned.figures())
            } else if at <= ways {
                let way = Way::ALL[at - 1];
                let base = Base::Case(Way::Together.name().to_owned());
                found(way.name(), &base, &block_on(way.publish(bed, jobs)))
            } else {
                self.peers[at - ways - 1].burst(bed, CASE, jobs)
            };
        }
        cases.concat()
    }
}
