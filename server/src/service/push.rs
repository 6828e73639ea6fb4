//! Pushes: a queue whose config names a URL has its jobs sent there.
//!
//! [`Discovery`] finds the queues, and starts a `taker` for each: it takes jobs as there is room for them at their target,
//! and has each of them delivered. [`DeadLetters`] tells other queues of the jobs that died.

mod addresses;
mod callbacks;
mod circuit;
mod claim;
mod dead_letters;
mod delivery;
mod discovery;
mod load;
pub(crate) mod metrics;
mod noted;
mod options;
mod pushed_queue;
mod resolver;
mod sender;
mod state;
mod taker;
mod target;
mod tls;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use delayline_tokio::{Client, QueueConfig, QueueName};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::dead_letters::DeadLetters;
use self::discovery::Discovery;
use self::load::Load;
use self::pushed_queue::{Queues, Shared};
use self::target::Targets;
use crate::service::registry::{Kind, Registry, RegistryError};

pub(crate) use self::options::{PushOptions, PushSettings};

/// The most bytes of bodies in hand.
const BYTES_MOST: usize = 64 << 20;
/// The largest body that is pushed: what a service takes at most.
const BODY_MOST: usize = 16 << 20;
/// How long it may take until what was given up is given back.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(5);
/// How many queues that were configured here may wait to be looked at; the others are found a little later.
const CHANGES_WAITING: usize = 256;

/// Pushes the jobs of queues that are configured so. When it is dropped, what is under way is given back unspent.
pub(crate) struct Pusher {
    shared: Arc<Shared>,
    pushing: JoinSet<()>,
    telling: JoinSet<()>,
}

/// What becomes known about pushes here, for routes that show and change queues.
#[derive(Clone)]
pub(crate) struct PushStates {
    registry: Arc<Registry>,
    /// `None` where nothing is pushed.
    shared: Option<Arc<Shared>>,
}

impl Pusher {
    /// Begins to push, until `stopping` says that it is to take no more jobs.
    pub(crate) fn start(
        client: &Client,
        registry: &Arc<Registry>,
        settings: PushSettings,
        stopping: watch::Receiver<bool>,
    ) -> Pusher {
        let (changes, configured) = mpsc::channel(CHANGES_WAITING);
        let PushSettings { secrets, addresses, resolver, tls, requests } = settings;
        let shared = Arc::new(Shared {
            client: client.clone(),
            registry: Arc::clone(registry),
            targets: Targets::default(),
            load: Load::new(BYTES_MOST),
            requests: Semaphore::new(requests),
            queues: Queues::default(),
            death: Notify::new(),
            changes,
            claims: watch::Sender::new(0),
            stopping,
            secrets,
            max_body: BODY_MOST,
            addresses,
            resolver,
            tls,
        });
        let (mut pushing, mut telling) = (JoinSet::new(), JoinSet::new());
        pushing.spawn(Discovery::new(Arc::clone(&shared), configured).run());
        telling.spawn(DeadLetters::new(Arc::clone(&shared)).run());
        Pusher { shared, pushing, telling }
    }

    /// Waits until it is told to stop, and then for what is under way; what is not done within `grace` is given back
    /// unspent.
    pub(crate) async fn ended(mut self, grace: Duration) {
        let mut stopping = self.shared.stopping.clone();
        let _ = stopping.wait_for(|stopping| *stopping).await;
        self.telling.shutdown().await;
        if timeout(grace, self.pushing.join_next()).await.is_err() {
            tracing::warn!("pushes were given up: they took over {grace:?} to end");
            self.pushing.shutdown().await;
            // What that ends in turn ends a little later: until then its jobs are not given back.
            let mut claims = self.shared.claims.subscribe();
            let _ = timeout(GIVEN_BACK_WITHIN, claims.wait_for(|claims| *claims == 0)).await;
        }
    }
}

impl PushStates {
    pub(crate) fn new(registry: &Arc<Registry>, pusher: Option<&Pusher>) -> PushStates {
        let shared = pusher.map(|pusher| Arc::clone(&pusher.shared));
        PushStates { registry: Arc::clone(registry), shared }
    }

    /// How the target of a queue does: as this process knows it, or as another has noted it.
    pub(crate) async fn of(&self, queue: &QueueName, config: &QueueConfig) -> Option<Value> {
        config.push.as_ref()?;
        let here = self.shared.as_ref().and_then(|shared| shared.queues.get(queue));
        if let Some(target) = here.as_ref().and_then(|queue| queue.target.as_ref()) {
            return serde_json::to_value(target.state(std::time::Instant::now())).ok();
        }
        noted_state(&self.registry, queue).await
    }

    /// Tells all pushers that the config of a queue has changed.
    pub(crate) async fn configured(&self, queue: &QueueName, config: &QueueConfig, cfgver: u64) {
        if let Some(shared) = &self.shared {
            let _ = shared.changes.try_send(queue.clone());
        }
        hint(&self.registry, queue, config, cfgver).await;
    }
}

/// How the target of a queue does, as the process has noted that last had news of it.
pub(crate) async fn noted_state(registry: &Registry, queue: &QueueName) -> Option<Value> {
    let noted = registry.notes(Kind::Push, &[queue.as_str()]).await.ok()?.pop().flatten()?;
    serde_json::from_str(&noted).ok()
}

/// Tells all pushers that the config of a queue has changed. Who does not hear it finds out within minutes.
pub(crate) async fn hint(registry: &Arc<Registry>, queue: &QueueName, config: &QueueConfig, cfgver: u64) {
    if let Err(error) = try_hint(registry, queue, config, cfgver).await {
        tracing::warn!(%queue, %error, "pushers are not told that the config has changed: they see it within 5 min");
    }
}

async fn try_hint(
    registry: &Arc<Registry>,
    queue: &QueueName,
    config: &QueueConfig,
    cfgver: u64,
) -> Result<(), RegistryError> {
    if config.push.is_some() {
        return registry.put(Kind::Push, queue.as_str(), &cfgver).await;
    }
    // Who cannot know yet that there is an entry leaves one that says nothing.
    if registry.current().await?.contains(Kind::Push, queue.as_str()) {
        registry.remove(Kind::Push, queue.as_str()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use delayline_tokio::{Place, Prefix};
    use futures_util::future::BoxFuture;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::addresses::Addresses;
    use super::resolver::Resolve;
    use super::*;

    /// Answers each question by the next of these addresses.
    struct InTurn(Mutex<Vec<IpAddr>>);

    impl Resolve for InTurn {
        fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let mut answers = self.0.lock().unwrap();
            let answer = if answers.is_empty() { Vec::new() } else { vec![answers.remove(0)] };
            Box::pin(async move { Ok(answer) })
        }
    }

    /// A receiver that ends each connection after one answer, and how many it has had.
    async fn receiver() -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await;
            }
        });
        (port, connections)
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_the_second_time_is_not_followed_there() {
        let (port, connections) = receiver().await;
        let answers = ["127.0.0.1", "127.0.0.2", "10.0.0.1"].map(|answer| answer.parse().unwrap());
        let settings = PushSettings {
            secrets: Vec::new(),
            // What stands for the public internet here, and nothing else.
            addresses: Addresses::allowing(&["127.0.0.1/32".parse().unwrap()]),
            resolver: Arc::new(InTurn(Mutex::new(answers.to_vec()))),
            tls: tls::config(None).unwrap(),
            requests: 10,
        };
        let client = Client::connect("memory://").await.unwrap();
        let registry = Registry::open("memory://", &Prefix::default()).await.unwrap();
        let queue = client.bytes("q").unwrap();
        let push = Some(format!(r#"{{"url":"http://a.example:{port}/","concurrency":1}}"#));
        queue.configure(QueueConfig { push, ..QueueConfig::default() }, None).await.unwrap();
        let stop = watch::Sender::new(false);
        let pusher = Pusher::start(&client, &registry, settings, stop.subscribe());
        for id in ["first", "second", "third"] {
            queue.publish_bytes("{}").id(id).await.unwrap();
            while queue.stats(0).await.map(|stats| stats.ready + stats.delayed + stats.leased).unwrap() > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        assert_eq!(connections.load(Ordering::Relaxed), 1);
        let dead = queue.list(Place::Dead, 10, None).await.unwrap().items;
        let reasons: Vec<&str> = dead.iter().filter_map(|job| job.last_reason()).collect();
        let refused = |address: &str| {
            format!(
                "it cannot be pushed: a.example is at {address}, which is no public address: push elsewhere, or allow it \
                 by --push-allow"
            )
        };
        assert_eq!(reasons, [refused("127.0.0.2"), refused("10.0.0.1")]);
        stop.send_replace(true);
        pusher.ended(Duration::from_secs(5)).await;
        client.close().await;
    }
}
