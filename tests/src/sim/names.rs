//! The few names that plans use, so that what they ask for meets.

use delayline_core::{JobId, Keyspace, Prefix, QueueName, Shards};

/// The most queues of a plan.
pub(super) const MOST: usize = 4;

const QUEUES: [&str; MOST] = ["red", "green", "blue", "violet"];

/// The name of a plan's queue.
///
/// # Panics
/// If a plan has no such queue.
pub(super) fn queue(number: usize) -> QueueName {
    QUEUES[number].parse().expect("a queue name")
}

/// The number of a queue's name.
pub(super) fn index(queue: &QueueName) -> Option<usize> {
    QUEUES.iter().position(|name| *name == queue.as_str())
}

/// The name of a plan's job.
///
/// # Panics
/// Never: every number gives a name.
pub(super) fn job(number: u32) -> JobId {
    format!("j{number}").parse().expect("a job id")
}

/// The number of a job's name.
pub(super) fn number(id: &JobId) -> Option<u32> {
    id.as_str().strip_prefix('j')?.parse().ok()
}

/// Where the forwarding queue's jobs go, in the only shard's hash tag where a cluster would ask for it.
pub(super) fn destination(kind: &str) -> String {
    format!("{kind}:to-{kind}")
}

/// The names of all keys.
///
/// # Panics
/// If that is no number of shards.
pub(super) fn keys(shards: u16) -> Keyspace {
    Keyspace::new(&Prefix::default(), Shards::new(shards).expect("a number of shards"))
}
