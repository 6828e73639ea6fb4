//! What a run tells of itself.

use delayline_core::{Command, Event, JobId, QueueName, Reply, UnixMicros};

use super::names;
use super::plan::Asks;

/// Prints what happens, to all jobs or to one.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The job it is about; all if `None`.
    pub of: Option<JobId>,
}

impl Story {
    /// The story of a job, or of all.
    pub fn about(of: Option<JobId>) -> Story {
        Story { of }
    }

    pub(super) fn act(&mut self, us: u64, node: usize, what: &Asks) {
        self.tell(us, &format!("caller at node {node}"), &format!("{what:?}"));
    }

    pub(super) fn redis(&mut self, us: u64, now: UnixMicros, command: &Command, reply: &Reply) {
        self.tell(us, "redis", &format!("at {now} {command:?}\n        -> {reply:?}"));
    }

    pub(super) fn event(&mut self, us: u64, node: usize, event: &Event) {
        self.tell(us, &format!("node {node}"), &format!("{event:?}"));
    }

    fn tell(&self, us: u64, who: &str, words: &str) {
        let about = |id: &JobId| words.contains(&format!("\"{id}\"")) || words.contains(&format!("({id})"));
        if self.of.as_ref().is_none_or(about) {
            println!("{:>6}.{:03} ms  {who:<18} {words}", us / 1000, us % 1000);
        }
    }
}

/// Which queue a name is.
#[allow(dead_code)]
fn named(queue: &QueueName) -> Option<usize> {
    names::index(queue)
}
