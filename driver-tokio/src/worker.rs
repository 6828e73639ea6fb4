use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use delayline_core::{Config, Job, Pumping, QueueName, Subscription};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::client::Office;
use crate::handler::{Handler, Handlers};
use crate::inbox::Stop;
use crate::invalid::{self, Invalid, millis};
use crate::link::Trouble;
use crate::owner::{self, Plan};
use crate::{Client, Error, IntoVerdict, entropy};

/// Runs handlers on the jobs of queues, and renews their leases for as long as they take.
///
/// Handlers run on the runtime that awaits [`run_until`](Worker::run_until), each in a task of its own; leases are
/// renewed from another thread, so that a handler that blocks its runtime keeps them. A handler that panics has failed
/// an attempt. One whose lease is lost all the same is aborted at its next await: its job may be run elsewhere by then.
#[must_use = "a worker does nothing until it is run"]
pub struct Worker {
    office: Arc<Office>,
    slots: u16,
    lease: Duration,
    grace: Duration,
    queues: Vec<(Subscription, Handler)>,
    refused: Option<Error>,
}

/// How a queue shares a worker with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Its share of the concurrency, beside the other queues'; 1 to 100.
    pub weight: u16,
    /// The most of its jobs at once; at least 1.
    pub max: u16,
}

impl Default for QueueOptions {
    fn default() -> QueueOptions {
        QueueOptions { weight: 1, max: 10_000 }
    }
}

impl Worker {
    /// A worker on the client's deployment, with an engine and connections of its own.
    pub fn new(client: &Client) -> Worker {
        Worker {
            office: client.office.clone(),
            slots: 50,
            lease: Duration::from_secs(30),
            grace: Duration::from_secs(20),
            queues: Vec::new(),
            refused: None,
        }
    }

    /// How many jobs run at once, over all queues: 1 to 10,000; 50 if not called.
    pub fn concurrency(mut self, jobs: u16) -> Worker {
        self.slots = jobs;
        self
    }

    /// How long the leases last, 1 s to 24 h; 30 s if not called. They are renewed at a third of that, so this is how
    /// long the jobs of a worker that crashed wait, not how long a handler may take.
    pub fn lease(mut self, lease: Duration) -> Worker {
        self.lease = lease;
        self
    }

    /// How long handlers may go on after the shutdown has begun; 20 s if not called.
    pub fn grace(mut self, grace: Duration) -> Worker {
        self.grace = grace;
        self
    }

    /// Runs `handler` on the queue's jobs.
    pub fn queue<H, F>(self, name: impl AsRef<str>, handler: H) -> Worker
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: IntoVerdict,
    {
        self.queue_with(name, QueueOptions::default(), handler)
    }

    /// Runs `handler` on the queue's jobs, with a share of the concurrency.
    pub fn queue_with<H, F>(mut self, name: impl AsRef<str>, options: QueueOptions, handler: H) -> Worker
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: IntoVerdict,
    {
        match name.as_ref().parse::<QueueName>() {
            Ok(queue) if self.queues.iter().any(|(known, _)| known.queue == queue) => {
                self.refused.get_or_insert(Invalid::QueueTwice(queue.to_string()).into());
            }
            Ok(queue) => {
                let subscription = Subscription { queue, weight: options.weight, max: options.max };
                let handler: Handler = Arc::new(move |job| {
                    let work = handler(job);
                    Box::pin(async move { work.await.into_verdict() })
                });
                self.queues.push((subscription, handler));
            }
            Err(error) => drop(self.refused.get_or_insert(error.into())),
        }
        self
    }

    /// Runs until the client is closed: [`run_until`](Worker::run_until) without another end.
    pub async fn run(self) -> Result<(), Error> {
        self.run_until(std::future::pending()).await
    }

    /// Runs until `shutdown` ends or the client is closed, then takes no more jobs and waits for those that run. What
    /// still runs when the grace is over is aborted and given back, its attempt unspent.
    ///
    /// Fails only before it begins: on a name or a limit that cannot be used. When its future is dropped, what runs is
    /// aborted and given back at once.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let mut client_stop = self.office.desk.stop.subscribe();
        let desk = owner::start(self.plan()?).await?;
        let _now = StopNow(desk.stop.clone());
        let closed = async {
            if client_stop.wait_for(|stop| *stop != Stop::Not).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let mut ended = desk.ended.clone();
        tokio::select! {
            () = shutdown => {}
            () = closed => {}
            _ = ended.changed() => {}
        }
        let _ = desk.stop.send(Stop::Drain);
        let _ = ended.changed().await;
        Ok(())
    }

    fn plan(self) -> Result<Plan, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        if self.queues.is_empty() {
            return Err(Invalid::NoQueue.into());
        }
        invalid::lease(self.lease)?;
        let runtime = Handle::try_current().map_err(|_| Invalid::NoRuntime)?;
        let config = Config {
            shards: self.office.shards,
            subscriptions: self.queues.iter().map(|(subscription, _)| subscription.clone()).collect(),
            slots: self.slots,
            pump: Pumping::Always,
            lease_ms: millis(self.lease),
            salt: entropy::random()?,
            ceiling: self.office.limits.ceiling,
            ..Config::default()
        };
        let by_queue: HashMap<QueueName, Handler> =
            self.queues.into_iter().map(|(subscription, handler)| (subscription.queue, handler)).collect();
        Ok(Plan {
            store: self.office.store.clone(),
            prefix: self.office.prefix.clone(),
            config,
            grace: self.grace,
            handlers: Some(Handlers { runtime, by_queue }),
            trouble: Trouble::default(),
        })
    }
}

/// Stops an engine at once when nobody waits for its worker any more.
struct StopNow(watch::Sender<Stop>);

impl Drop for StopNow {
    fn drop(&mut self) {
        let _ = self.0.send(Stop::Now);
    }
}
