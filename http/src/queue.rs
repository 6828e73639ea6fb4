use delayline_core::{Counters, QueueName, Stats};
use serde::{Serialize, Serializer};

use crate::{Document, Time};

/// A queue as JSON.
#[derive(Debug, Serialize)]
pub struct Queue {
    /// Its name.
    #[serde(rename = "queue")]
    pub name: String,
    /// Whether it is paused.
    pub paused: bool,
    /// How many jobs it holds.
    pub sizes: Sizes,
    /// The earliest due time of a waiting job.
    pub oldest_due: Option<Time>,
    /// The delayed jobs of each hour from now.
    pub delayed_by_hour: Vec<u64>,
    /// What happened so far.
    #[serde(serialize_with = "by_name")]
    pub counters: Counters,
    /// The mean of its records' lengths.
    pub mean_bytes: u64,
    /// The version of its config.
    pub cfgver: u64,
    /// Its config.
    pub config: Document,
    /// Why the last forward failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_error: Option<String>,
}

/// How many jobs a queue holds, by their state.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sizes {
    /// Due, and not held.
    pub ready: u64,
    /// Due later.
    pub delayed: u64,
    /// Held by consumers.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
}

fn by_name<S: Serializer>(counters: &Counters, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counters.named())
}

impl Queue {
    /// The queue by what it counts.
    pub fn new(queue: &QueueName, stats: Stats) -> Queue {
        Queue {
            name: queue.to_string(),
            paused: stats.paused,
            sizes: Sizes {
                ready: stats.ready,
                delayed: stats.delayed,
                leased: stats.leased,
                dead: stats.dead,
            },
            oldest_due: stats.oldest_due.map(Time),
            delayed_by_hour: stats.hours,
            counters: stats.counters,
            mean_bytes: stats.mean_bytes,
            cfgver: stats.cfgver,
            config: stats.config.into(),
            forward_error: stats.forward_error,
        }
    }
}
