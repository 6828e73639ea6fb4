use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use delayline_core::{Keyspace, State};
use delayline_tokio::redis::cmd;
use delayline_tokio::{Client, Error, Fence, JobId, Phase, Queue, QueueName, Reason, Stats, UnixMs};
use serde::Serialize;

use super::arrival::Arrival;
use super::connection::Connection;
use crate::cli::redis::{self, Redis};
use crate::failure::Failure;

const BURY: &str = include_str!("bury.lua");

/// The queues that jobs are moved to.
pub(super) struct Destination {
    client: Client,
    /// What no command of the client does goes over a connection of its own.
    connection: Connection,
    keys: Keyspace,
    queues: BTreeMap<QueueName, Queue>,
    before: Sizes,
    /// Redis's clock when it was asked, and when that was.
    clock: (UnixMs, Instant),
}

/// How many jobs queues hold.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Sizes {
    pub(super) ready: u64,
    pub(super) delayed: u64,
    pub(super) leased: u64,
    pub(super) dead: u64,
}

/// What became of a job that was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landed {
    New,
    /// A job of its id was there: the same one, published by a run that was broken off before it knew.
    AlreadyThere,
}

impl Destination {
    pub(super) async fn connect(redis: &Redis, url: &str) -> Result<Destination, Failure> {
        let client = redis.builder().connect(url).await?;
        let mut connection = Connection::open(url).await?;
        let (seconds, micros): (u64, u64) = connection.ask(&cmd("TIME")).await?;
        let now = UnixMs(seconds * 1_000 + micros / 1_000);
        let keys = Keyspace::new(client.prefix(), client.shards());
        let (queues, before) = (BTreeMap::new(), Sizes::default());
        Ok(Destination { client, connection, keys, queues, before, clock: (now, Instant::now()) })
    }

    pub(super) fn address(&self) -> &str {
        self.client.address()
    }

    /// Redis's clock, about.
    pub(super) fn now(&self) -> UnixMs {
        let (then, begun) = self.clock;
        UnixMs(then.0 + u64::try_from(begun.elapsed().as_millis()).unwrap_or(0))
    }

    pub(super) fn knows(&self, name: &QueueName) -> bool {
        self.queues.contains_key(name)
    }

    /// Counts a queue in, as it is before anything is moved to it.
    pub(super) async fn add(&mut self, name: &QueueName) -> Result<Stats, Failure> {
        let queue = redis::queue(&self.client, name)?;
        let stats = queue.stats(0).await?;
        self.before.add(&stats);
        self.queues.insert(name.clone(), queue);
        Ok(stats)
    }

    /// What a queue is like that need not be counted in.
    pub(super) async fn look_at(&self, name: &QueueName) -> Result<Stats, Failure> {
        Ok(redis::queue(&self.client, name)?.stats(0).await?)
    }

    /// Pauses a queue; answers when it came to be, and the version of its config.
    pub(super) async fn pause(&self, name: &QueueName) -> Result<(u64, u64), Failure> {
        let queue = redis::queue(&self.client, name)?;
        let cfgver = queue.pause().await?;
        let born = queue.stats(0).await?.born.map_or(0, |born| born.0);
        Ok((born, cfgver))
    }

    pub(super) async fn resume(&self, name: &QueueName) -> Result<(), Failure> {
        redis::queue(&self.client, name)?.resume().await?;
        Ok(())
    }

    /// Publishes jobs to queues that were counted in, makes dead letters of those that are dead, and answers what became
    /// of each, in their order.
    pub(super) async fn land(
        &mut self,
        arrivals: Vec<Arrival>,
    ) -> Result<Vec<Result<Landed, Error>>, Failure> {
        let dead: Vec<Option<(QueueName, JobId, UnixMs, &str)>> = arrivals
            .iter()
            .map(|job| job.dead.map(|reason| (job.queue.clone(), job.id.clone(), job.due, reason)))
            .collect();
        let Some(any) = arrivals.first().and_then(|first| self.queues.get(&first.queue)) else {
            return Ok(Vec::new());
        };
        let jobs: Vec<_> = arrivals
            .into_iter()
            .filter_map(|job| self.queues.get(&job.queue).map(|queue| job.publish(queue)))
            .collect();
        let landed = any.publish_all(jobs).await;
        let published = dead.into_iter().zip(&landed).filter(|(_, landed)| landed.is_ok());
        self.bury(published.filter_map(|(dead, _)| dead).collect()).await?;
        let landed = landed.into_iter().map(|landed| match landed {
            Ok(published) if published.duplicate => Ok(Landed::AlreadyThere),
            Ok(_) => Ok(Landed::New),
            Err(error) => Err(error),
        });
        Ok(landed.collect())
    }

    /// No command of the client makes a dead letter of a job that nobody has had, and one that is granted first would
    /// need a consumer that sees it.
    async fn bury(&mut self, jobs: Vec<(QueueName, JobId, UnixMs, &str)>) -> Result<(), Failure> {
        let mut by_queue: BTreeMap<QueueName, Vec<(JobId, UnixMs, &str)>> = BTreeMap::new();
        for (queue, id, died, reason) in jobs {
            by_queue.entry(queue).or_default().push((id, died, reason));
        }
        for (queue, jobs) in by_queue {
            let [_, _, meta, _, due, _, state, dead, _, _, big] = self.keys.queue_keys(&queue);
            let mut eval = cmd("EVAL");
            eval.arg(BURY).arg(5).arg(&[meta, due, state, dead, big]);
            for (id, died, reason) in jobs {
                let died = died.min(self.now());
                eval.arg(id.as_str()).arg(died.0).arg(dead_state(died, reason).to_string());
            }
            self.connection.ask::<u64>(&eval).await?;
        }
        Ok(())
    }

    /// What all queues held before and hold now that jobs were moved to.
    pub(super) async fn sizes(&self) -> Result<(Sizes, Sizes), Failure> {
        let mut after = Sizes::default();
        for queue in self.queues.values() {
            after.add(&queue.stats(0).await?);
        }
        Ok((self.before, after))
    }

    pub(super) fn queues(&self) -> usize {
        self.queues.len()
    }

    pub(super) async fn close(self) {
        let _ = tokio::time::timeout(Duration::from_secs(5), self.client.close()).await;
    }
}

/// The state of a dead letter of which nobody knows how often it ran.
fn dead_state(died: UnixMs, reason: &str) -> State {
    State {
        phase: Phase::Dead,
        fence: Fence(0),
        attempts: 0,
        verdict: None,
        max: 0,
        deliveries: 0,
        flags: 0,
        due: died,
        extension: String::new(),
        reason: Reason::new(reason),
    }
}

impl Sizes {
    fn add(&mut self, stats: &Stats) {
        self.ready += stats.ready;
        self.delayed += stats.delayed;
        self.leased += stats.leased;
        self.dead += stats.dead;
    }
}
