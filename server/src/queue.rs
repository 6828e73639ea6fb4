use std::fmt;

use delayline_tokio::{Counters, QueueName, Stats};
use serde::{Serialize, Serializer};

use crate::document::Document;
use crate::table::{Align, Table};
use crate::timestamp::Time;

/// A queue as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Queue {
    #[serde(rename = "queue")]
    name: String,
    paused: bool,
    sizes: Sizes,
    oldest_due: Option<Time>,
    delayed_by_hour: Vec<u64>,
    #[serde(serialize_with = "by_name")]
    counters: Counters,
    mean_bytes: u64,
    cfgver: u64,
    config: Document,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward_error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Sizes {
    ready: u64,
    delayed: u64,
    leased: u64,
    dead: u64,
}

fn by_name<S: Serializer>(counters: &Counters, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counters.named())
}

impl Queue {
    pub(crate) fn new(queue: &QueueName, stats: Stats) -> Queue {
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

/// Queues as a table of their sizes.
pub(crate) fn table(queues: &[Queue]) -> Table {
    let columns = [
        ("queue", Align::Left),
        ("ready", Align::Right),
        ("delayed", Align::Right),
        ("leased", Align::Right),
        ("dead", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for queue in queues {
        let Sizes { ready, delayed, leased, dead } = queue.sizes;
        let sizes = [ready, delayed, leased, dead].map(|jobs| jobs.to_string());
        let paused = if queue.paused { "paused" } else { "" };
        table.row([queue.name.clone()].into_iter().chain(sizes).chain([paused.to_string()]));
    }
    table
}

/// All that is known, over several lines.
impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paused = if self.paused { " (paused)" } else { "" };
        writeln!(f, "{}{paused}", self.name)?;
        let Sizes { ready, delayed, leased, dead } = self.sizes;
        for (state, jobs) in [("ready", ready), ("delayed", delayed), ("leased", leased), ("dead", dead)] {
            writeln!(f, "  {state:<12} {jobs:>12}")?;
        }
        if let Some(oldest_due) = self.oldest_due {
            writeln!(f, "  {:<12} {oldest_due}", "oldest due")?;
        }
        for (event, count) in self.counters.named().iter().filter(|(_, count)| *count > 0) {
            writeln!(f, "  {event:<12} {count:>12}")?;
        }
        writeln!(f, "  {:<12} {}", "config", serde_json::to_string(&self.config).unwrap_or_default())
    }
}
