//! What a run tells of itself.

use std::collections::BTreeMap;

use delayline_core::story::{About, Line, Story as Teller};
use delayline_core::{Command, JobId, QueueName, Reply, UnixMs};

use super::world::EPOCH_MS;

/// Prints what happens: when, to whom, what and why; to all jobs, or to one.
#[derive(Clone, Debug)]
pub struct Story {
    of: Option<JobId>,
    /// The queue of that job, once it is known.
    queue: Option<QueueName>,
    redis: Teller,
    nodes: BTreeMap<usize, Teller>,
}

impl Story {
    /// The story of a job, or of all.
    pub fn about(of: Option<JobId>) -> Story {
        Story { of, queue: None, redis: teller(), nodes: BTreeMap::new() }
    }

    /// A round trip leaves, and what will become of it.
    pub(super) fn sends(&mut self, us: u64, node: usize, commands: &[Command], fate: &str) {
        let teller = self.nodes.entry(node).or_insert_with(teller);
        let lines = commands.iter().flat_map(|command| teller.sent(command)).map(|mut line| {
            line.words = format!("sends: {}{fate}", line.words);
            line
        });
        let lines = lines.collect();
        self.tell(us, &format!("node {node}"), lines);
    }

    pub(super) fn redis(&mut self, us: u64, command: &Command, reply: &Reply) {
        let lines = self.redis.answered(command, reply);
        self.tell(us, "redis", lines);
    }

    /// Something happens at a node.
    pub(super) fn node(&mut self, us: u64, node: usize, tell: impl FnOnce(&mut Teller) -> Vec<Line>) {
        let lines = tell(self.nodes.entry(node).or_insert_with(teller));
        self.tell(us, &format!("node {node}"), lines);
    }

    /// The node knows nothing any more.
    pub(super) fn forget(&mut self, node: usize) {
        self.nodes.remove(&node);
    }

    fn tell(&mut self, us: u64, who: &str, lines: Vec<Line>) {
        for line in lines {
            if self.concerns(&line.about) {
                print(us, who, &line.to_string());
            }
        }
    }

    fn concerns(&mut self, about: &About) -> bool {
        let Some(of) = &self.of else { return true };
        if about.id() == Some(of) && self.queue.is_none() {
            self.queue = about.queue().cloned();
        }
        self.queue.as_ref().is_some_and(|queue| about.concerns(queue, of))
    }
}

fn teller() -> Teller {
    Teller::since(UnixMs(EPOCH_MS))
}

/// Something happens, whosever story it is.
pub(super) fn print(us: u64, who: &str, words: &str) {
    println!("{:>6}.{:03}  {who:<7} {words}", us / 1000, us % 1000);
}
