use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delayline_http::push::{Push, QueuePush, QueuePushError, Secret};
use delayline_tokio::{Client, QueueName};
use rustls::ClientConfig;
use tokio::sync::{Notify, Semaphore, mpsc, watch};

use super::addresses::Addresses;
use super::load::Load;
use super::resolver::{Connector, Resolve};
use super::sender::Sender;
use super::target::{Allowance, Target, Targets};
use crate::service::registry::Registry;

/// What a lease lasts longer than the push it is for: the wait for a turn before it, callbacks and the verdict after it.
const LEASE_BESIDE: Duration = Duration::from_secs(30);
/// Jobs that name their own URLs go to many targets: of their queue so many times what one target allows are in hand.
const TARGETS_AT_ONCE: usize = 8;

/// What all pushes of this process share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) registry: Arc<Registry>,
    pub(super) targets: Targets,
    pub(super) load: Load,
    /// Of those that may be under way, in this process.
    pub(super) requests: Semaphore,
    pub(super) queues: Queues,
    /// The names of queues that were configured here.
    pub(super) changes: mpsc::Sender<QueueName>,
    /// A job has died of a verdict.
    pub(super) death: Notify,
    /// How many there are.
    pub(super) claims: watch::Sender<usize>,
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) secrets: Vec<Secret>,
    pub(super) max_body: usize,
    pub(super) addresses: Addresses,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) tls: ClientConfig,
}

/// The queues that are pushed, as their configs say.
#[derive(Default)]
pub(super) struct Queues(Mutex<BTreeMap<QueueName, Arc<PushedQueue>>>);

/// A queue that is pushed, and what that takes. A change of its config makes another.
pub(super) struct PushedQueue {
    pub(super) name: QueueName,
    pub(super) settings: QueuePush,
    pub(super) push: Push,
    pub(super) sender: Sender,
    /// Where all its jobs go, unless they may name their own URLs.
    pub(super) target: Option<Arc<Target>>,
    pub(super) allowance: Allowance,
    /// For each of its deliveries.
    pub(super) slots: Arc<Semaphore>,
    pub(super) shared: Arc<Shared>,
}

impl PushedQueue {
    /// A queue whose config says this.
    pub(super) fn new(
        name: QueueName,
        text: &str,
        shared: &Arc<Shared>,
    ) -> Result<PushedQueue, QueuePushError> {
        let settings = QueuePush::read(text)?;
        settings.validate_for(&name)?;
        let push =
            Push { targets: settings.targets()?, secrets: shared.secrets.clone(), max_body: shared.max_body };
        let concurrency = usize::from(settings.concurrency());
        let only = settings.url.as_ref().filter(|_| !settings.allows_own_urls());
        let target = only.map(|url| shared.targets.of(&url.0.origin()));
        let slots = if target.is_some() { concurrency } else { concurrency * TARGETS_AT_ONCE };
        let connect_within = Duration::from(settings.connect_timeout());
        let connector =
            Connector::new(Arc::clone(&shared.resolver), shared.addresses.clone(), connect_within);
        Ok(PushedQueue {
            sender: Sender::new(connector, shared.tls.clone(), connect_within, concurrency),
            allowance: Allowance {
                concurrency: u32::from(settings.concurrency()),
                interval: settings.rate.as_ref().map(|rate| Duration::from_micros(rate.0.interval_us())),
            },
            slots: Arc::new(Semaphore::new(slots)),
            shared: Arc::clone(shared),
            name,
            settings,
            push,
            target,
        })
    }

    /// How long a push may take.
    pub(super) fn timeout(&self) -> Duration {
        self.settings.timeout().into()
    }

    /// How long the leases of its jobs last.
    pub(super) fn lease(&self) -> Duration {
        self.timeout() + LEASE_BESIDE
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.shared.stopping.borrow()
    }
}

impl Queues {
    pub(super) fn put(&self, queue: &Arc<PushedQueue>) {
        self.locked().insert(queue.name.clone(), Arc::clone(queue));
    }

    pub(super) fn remove(&self, name: &QueueName) {
        self.locked().remove(name);
    }

    pub(super) fn get(&self, name: &QueueName) -> Option<Arc<PushedQueue>> {
        self.locked().get(name).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<PushedQueue>> {
        self.locked().values().cloned().collect()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<QueueName, Arc<PushedQueue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
