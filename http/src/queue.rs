use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::{Ask, Counters, QueueConfig, QueueName, Sizes as Removed, Stats};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::etag::{etag, is_known};
use crate::{Document, Headers, Options, Problem, Response, Time};

/// `GET queues/{queue}`: shows a queue.
#[derive(Debug)]
pub struct Show {
    /// Which.
    pub queue: QueueName,
    /// How many hours of delayed jobs are counted.
    pub hours: u8,
}

/// `GET queues/{queue}/config`: shows the config of a queue.
#[derive(Debug)]
pub struct ShowConfig {
    /// Of which queue.
    pub queue: QueueName,
}

/// A queue as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Queue {
    /// Its name.
    #[serde(rename = "queue")]
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Name))]
    pub name: String,
    /// Whether it is paused.
    pub paused: bool,
    /// How many jobs it holds.
    pub sizes: Sizes,
    /// The earliest due time of a waiting job.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<crate::openapi::text::Moment>))]
    pub oldest_due: Option<Time>,
    /// The delayed jobs of each hour from now.
    pub delayed_by_hour: Vec<u64>,
    /// What happened so far.
    #[serde(serialize_with = "by_name")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub counters: Counters,
    /// The mean of its records' lengths.
    pub mean_bytes: u64,
    /// The version of its config.
    pub cfgver: u64,
    /// Its config.
    pub config: Document,
    /// How the target does that its jobs are pushed to, as the process knows it that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push_state: Option<Value>,
    /// Why the last forward failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_error: Option<String>,
}

/// How many jobs a queue holds, by their state.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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

    /// The answer, given what the queue counts, and how the target does that its jobs are pushed to.
    pub fn answer(&self, stats: Stats, push_state: Option<Value>) -> Result<Response, Problem> {
        if stats.born.is_none() {
            return Err(no_such_queue(&self.queue));
        }
        let queue = Queue { push_state, ..Queue::new(&self.queue, stats) };
        Ok(Response::json(200, &queue))
    }
}

impl ShowConfig {
    /// Reads it: it has no options.
    pub fn read(queue: QueueName, options: Options) -> Result<ShowConfig, Problem> {
        options.finish()?;
        Ok(ShowConfig { queue })
    }

    /// The answer, given what the queue counts: none to whoever knows this version.
    pub fn answer(&self, stats: Stats, headers: &Headers<'_>) -> Result<Response, Problem> {
        if stats.born.is_none() {
            return Err(no_such_queue(&self.queue));
        }
        if is_known(headers, stats.cfgver)? {
            let unchanged = Response { status: 304, headers: Vec::new(), body: Bytes::new() };
            Ok(unchanged.header("etag", etag(stats.cfgver)))
        } else {
            Ok(configured(stats.cfgver, stats.config))
        }
    }
}

/// A config as JSON, with its version.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = QueueConfig))]
pub(crate) struct Configured {
    /// The version, which grows with each change of the config and each pause.
    cfgver: u64,
    /// The config.
    config: Document,
}

/// Whether a queue is paused, with the version of its config.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Paused {
    /// Whether the queue is paused now.
    paused: bool,
    /// The version of its config.
    cfgver: u64,
}

/// A queue that is no more.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Destroyed<'a> {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Name))]
    queue: &'a str,
    /// How many jobs went with it.
    destroyed: Lost,
}

/// How many jobs went with a queue.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DestroyedJobs))]
struct Lost {
    /// Ready and delayed ones.
    waiting: u64,
    /// Ones that were held; their leases are `gone`.
    leased: u64,
    /// Dead letters.
    dead: u64,
}

/// A page of the names of queues as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = QueuePage))]
pub struct Names {
    /// Their names, in no order.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<crate::openapi::text::Name>))]
    pub queues: Vec<String>,
    /// How many jobs each of them holds, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<BTreeMap<String, Sizes>>,
    /// What to pass as `cursor` for the next page; `null` on the last.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<crate::openapi::text::CursorText>))]
    pub cursor: Option<String>,
}

/// The answer that shows a config.
pub fn configured(cfgver: u64, config: QueueConfig) -> Response {
    Response::json(200, &Configured { cfgver, config: config.into() }).header("etag", etag(cfgver))
}

/// The answer to a pause, or the end of one.
pub fn paused(paused: bool, cfgver: u64) -> Response {
    Response::json(200, &Paused { paused, cfgver }).header("etag", etag(cfgver))
}

/// The answer to the end of a queue that held these jobs.
pub fn destroyed(queue: &QueueName, removed: Removed) -> Response {
    let Removed { waiting, leased, dead } = removed;
    Response::json(200, &Destroyed { queue: queue.as_str(), destroyed: Lost { waiting, leased, dead } })
}

impl Queue {
    /// The queue by what it counts.
    pub fn new(queue: &QueueName, stats: Stats) -> Queue {
        Queue {
            name: queue.to_string(),
            paused: stats.paused,
            sizes: Sizes::from(&stats),
            oldest_due: stats.oldest_due.map(Time),
            delayed_by_hour: stats.hours,
            counters: stats.counters,
            mean_bytes: stats.mean_bytes,
            cfgver: stats.cfgver,
            config: stats.config.into(),
            push_state: None,
            forward_error: stats.forward_error,
        }
    }
}

impl From<&Stats> for Sizes {
    fn from(stats: &Stats) -> Sizes {
        let Stats { ready, delayed, leased, dead, .. } = *stats;
        Sizes { ready, delayed, leased, dead }
    }
}

/// There is no such queue.
pub fn no_such_queue(queue: &QueueName) -> Problem {
    Problem::not_found("no_such_queue", format!("there is no queue {queue}: its first job makes it"))
}
