//! What somebody wrote over, and who answers for what no more.

use delayline_core::{QueueConfig, QueueName};

use super::ledger::Ledger;
use super::{Instance, Key};
use crate::sim::names;

/// What was written over in a queue, from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Damage {
    #[default]
    None,
    /// What it counts.
    Counts,
    /// A key, which is of another type by now.
    Key,
}

impl Ledger {
    /// Nobody answers for the job any more, nor for what the queue counts.
    pub(in crate::sim) fn spoil_job(&mut self, key: Key) {
        self.jobs.remove(&key);
        self.spoiled.insert(key);
        self.spoil_counts(key.0);
    }

    /// Nobody answers for what the queue counts.
    pub(in crate::sim) fn spoil_counts(&mut self, queue: usize) {
        let of = self.queues.entry(queue).or_default();
        of.damage = of.damage.max(Damage::Counts);
    }

    /// Nobody answers for the jobs that the queue has or had, which are answered; without its `meta` neither for its config
    /// and what it remembers of batches.
    pub(in crate::sim) fn spoil_queue(&mut self, queue: usize, with_meta: bool) -> Vec<Instance> {
        let there = self.accepted.keys().filter(|instance| instance.key.0 == queue).copied();
        let there: Vec<Instance> = there.collect();
        for instance in &there {
            self.spoil_job(instance.key);
        }
        let of = self.queues.entry(queue).or_default();
        of.damage = Damage::Key;
        if with_meta {
            (of.born, of.paused, of.config) = (false, false, QueueConfig::default());
            self.batches.retain(|(_, _, of, _), _| *of != queue);
        }
        there
    }

    /// Somebody took names away from an index.
    pub(in crate::sim) fn spoil_names(&mut self) {
        self.names_lost = self.latest;
        self.queues.values_mut().for_each(|queue| queue.named = false);
    }

    /// Whether the queue's name is in the index of its shard.
    pub(in crate::sim) fn is_named(&self, queue: usize) -> bool {
        self.queues.get(&queue).is_some_and(|queue| queue.named)
    }

    pub(in crate::sim) fn is_spoiled(&self, key: Key) -> bool {
        self.spoiled.contains(&key)
    }

    /// Dead letters of the queue that nobody answers for.
    pub(super) fn spoiled_in(&self, queue: &QueueName) -> u64 {
        self.spoiled.iter().filter(|key| names::queue(key.0) == *queue).count() as u64
    }

    pub(in crate::sim) fn is_uncounted(&self, queue: usize) -> bool {
        self.queues.get(&queue).is_some_and(|queue| queue.damage >= Damage::Counts)
    }

    pub(in crate::sim) fn is_broken(&self, queue: usize) -> bool {
        self.queues.get(&queue).is_some_and(|queue| queue.damage == Damage::Key)
    }
}
