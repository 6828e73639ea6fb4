use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use delayline_tokio::{Error, QueueName};
use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::pushed_queue::{PushedQueue, Shared};
use super::taker;
use crate::service::registry::Kind;
use crate::service::seldom::Seldom;

/// How often the registry is asked whether somebody has configured a queue.
const HINTS_EVERY: Duration = Duration::from_secs(2);
/// How often the configs of the queues that are pushed are read again, since a library may have changed them.
const CONFIGS_EVERY: Duration = Duration::from_secs(30);
/// How often the configs of all queues are read, since a library may have configured one.
const SCAN_EVERY: Duration = Duration::from_secs(300);
const PAGE: u16 = 500;
const AT_ONCE: usize = 16;
/// The most queues that one process pushes.
const QUEUES_MOST: usize = 2_000;

/// Finds out which queues are pushed, and has their jobs taken.
pub(super) struct Discovery {
    shared: Arc<Shared>,
    /// The names of queues that were configured here.
    changed: mpsc::Receiver<QueueName>,
    running: BTreeMap<QueueName, Running>,
    takers: JoinSet<()>,
    warned: Seldom,
}

struct Running {
    /// What the config says.
    text: String,
    /// `None` if that cannot be used.
    queue: Option<watch::Sender<Arc<PushedQueue>>>,
}

impl Discovery {
    pub(super) fn new(shared: Arc<Shared>, changed: mpsc::Receiver<QueueName>) -> Discovery {
        let (running, takers) = (BTreeMap::new(), JoinSet::new());
        Discovery { shared, changed, running, takers, warned: Seldom::default() }
    }

    /// Looks again and again until the process is to stop; then waits for what is under way.
    pub(super) async fn run(mut self) {
        let mut stopping = self.shared.stopping.clone();
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = self.look() => {}
        }
        self.running.clear();
        while self.takers.join_next().await.is_some() {}
    }

    /// Never ends.
    async fn look(&mut self) {
        let mut ticks = interval(HINTS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut version, mut read, mut scanned) = (None, None::<Instant>, None::<Instant>);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                Some(name) = self.changed.recv() => {
                    self.read(BTreeSet::from([name])).await;
                    continue;
                }
            }
            while self.takers.try_join_next().is_some() {}
            let is_due = |last: Option<Instant>, every| last.is_none_or(|last| last.elapsed() >= every);
            if is_due(scanned, SCAN_EVERY) {
                match self.names().await {
                    Ok(names) => {
                        self.read(names).await;
                        (scanned, read) = (Some(Instant::now()), Some(Instant::now()));
                    }
                    Err(error) => self.warn("the queues cannot be listed, to see which are pushed", &error),
                }
            }
            let entries = match self.shared.registry.current().await {
                Ok(entries) => entries,
                Err(error) => {
                    self.warn("the registry cannot be read, to see which queues are pushed", &error);
                    continue;
                }
            };
            let has_changed = entries.version() != version.as_deref();
            if has_changed || is_due(read, CONFIGS_EVERY) || self.shared.client.is_memory() {
                let hinted = entries.all::<serde::de::IgnoredAny>(Kind::Push);
                let hinted = hinted.filter_map(|(name, _)| name.parse().ok());
                let names = hinted.chain(self.running.keys().cloned()).collect();
                self.read(names).await;
                (version, read) = (entries.version().map(str::to_owned), Some(Instant::now()));
            }
        }
    }

    async fn names(&self) -> Result<BTreeSet<QueueName>, Error> {
        let (mut names, mut cursor) = (BTreeSet::new(), None);
        loop {
            let page = self.shared.client.queues(cursor.as_ref(), PAGE).await?;
            names.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(names);
            }
        }
    }

    /// Reads the configs of these queues, and goes by them.
    async fn read(&mut self, names: BTreeSet<QueueName>) {
        let client = self.shared.client.clone();
        let reading = stream::iter(names).map(move |name| {
            let client = client.clone();
            async move {
                let stats = async { client.bytes(&name)?.stats(0).await };
                (name.clone(), stats.await.map(|stats| stats.config.push))
            }
        });
        let mut reading = reading.buffer_unordered(AT_ONCE);
        while let Some((name, config)) = reading.next().await {
            match config {
                Ok(text) => self.apply(name, text),
                Err(error) => {
                    self.warn("a queue's config cannot be read, to see whether it is pushed", &error);
                }
            }
        }
    }

    fn apply(&mut self, name: QueueName, text: Option<String>) {
        let Some(text) = text else {
            if self.running.remove(&name).is_some() {
                self.shared.queues.remove(&name);
                tracing::info!(queue = %name, "the queue is no longer pushed");
            }
            return;
        };
        let known = self.running.get(&name);
        if known.is_some_and(|known| known.text == text) {
            return;
        }
        if known.is_none() && self.running.len() >= QUEUES_MOST {
            self.warn("a queue is not pushed", &format!("{QUEUES_MOST} are, and no more may be"));
            return;
        }
        match PushedQueue::new(name.clone(), &text, &self.shared) {
            Ok(queue) => self.begin(text, Arc::new(queue)),
            Err(error) => {
                tracing::warn!(queue = %name, %error, "the queue cannot be pushed as its config says");
                self.shared.queues.remove(&name);
                self.running.insert(name, Running { text, queue: None });
            }
        }
    }

    fn begin(&mut self, text: String, queue: Arc<PushedQueue>) {
        let name = queue.name.clone();
        self.shared.queues.put(&queue);
        let running = self.running.get_mut(&name).and_then(|running| running.queue.take());
        let sender = if let Some(sender) = running {
            sender.send_replace(queue);
            sender
        } else {
            let (sender, receiver) = watch::channel(queue);
            self.takers.spawn(taker::run(receiver));
            sender
        };
        tracing::info!(queue = %name, "the queue is pushed");
        self.running.insert(name, Running { text, queue: Some(sender) });
    }

    fn warn(&self, what: &'static str, why: &dyn std::fmt::Display) {
        if self.warned.is_due(what).is_some() {
            tracing::warn!(%why, "{what}");
        }
    }
}
