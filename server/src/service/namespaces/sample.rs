use std::collections::BTreeSet;

use delayline_tokio::{Client, Error, QueueName};
use futures_util::{StreamExt, TryStreamExt, stream};

const AT_ONCE: usize = 16;

/// What some queues hold together.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) queues: BTreeSet<QueueName>,
    pub(crate) ready: u64,
    pub(crate) delayed: u64,
    pub(crate) leased: u64,
    pub(crate) dead: u64,
    /// Of records, estimated by their mean length.
    pub(crate) bytes: u64,
}

impl Sample {
    pub(super) async fn of(client: &Client, queues: Vec<QueueName>) -> Result<Sample, Error> {
        let mut sample = Sample::default();
        let stats = queues.clone().into_iter().map(|queue| {
            let client = client.clone();
            async move { client.bytes(&queue)?.stats(0).await }
        });
        let mut stats = stream::iter(stats).buffered(AT_ONCE);
        while let Some(stats) = stats.try_next().await? {
            let jobs = stats.ready + stats.delayed + stats.leased + stats.dead;
            sample.ready += stats.ready;
            sample.delayed += stats.delayed;
            sample.leased += stats.leased;
            sample.dead += stats.dead;
            sample.bytes = sample.bytes.saturating_add(jobs.saturating_mul(stats.mean_bytes));
        }
        sample.queues.extend(queues);
        Ok(sample)
    }

    pub(crate) fn jobs(&self) -> u64 {
        self.ready + self.delayed + self.leased + self.dead
    }

    /// Counts jobs that were let in.
    pub(super) fn add(&mut self, queue: &QueueName, jobs: u64, bytes: u64) {
        if !self.queues.contains(queue) {
            self.queues.insert(queue.clone());
        }
        self.ready = self.ready.saturating_add(jobs);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}
