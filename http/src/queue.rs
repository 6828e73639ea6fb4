use delayline_core::{Ask, Counters, QueueName, Stats};
use serde::{Serialize, Serializer};

use crate::{Document, Options, Problem, Response, Time};

/// `GET queues/{queue}`: shows a queue.
#[derive(Debug)]
pub struct Show {
    /// Which.
    pub queue: QueueName,
    /// How many hours of delayed jobs are counted.
    pub hours: u8,
}

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

impl Show {
    /// Reads its options.
    pub fn read(queue: QueueName, mut options: Options) -> Result<Show, Problem> {
        let hours = options.in_range("hours", 0..=48)?.unwrap_or(24);
        options.finish()?;
        Ok(Show { queue, hours })
    }

    /// What the queue is asked.
    pub fn ask(&self) -> Ask {
        Ask::Stats { queue: self.queue.clone(), hours: self.hours }
    }

    /// The answer, given what the queue counts.
    pub fn answer(&self, stats: Stats) -> Result<Response, Problem> {
        if stats.born.is_none() {
            return Err(no_such_queue(&self.queue));
        }
        let etag = etag(stats.cfgver);
        Ok(Response::json(200, &Queue::new(&self.queue, stats)).header("etag", etag))
    }
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

/// The version of a config as the header `ETag`.
pub fn etag(cfgver: u64) -> String {
    format!("\"{cfgver}\"")
}

/// There is no such queue.
pub fn no_such_queue(queue: &QueueName) -> Problem {
    Problem::not_found("no_such_queue", format!("there is no queue {queue}: its first job makes it"))
}
