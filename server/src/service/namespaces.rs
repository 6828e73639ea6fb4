//! Namespaces: which there are, what they hold, and how much they may.

mod ceilings;
mod sample;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use delayline_http::Problem;
use delayline_tokio::{Client, Error, Namespace, QueueName};
use tokio::sync::Mutex;

pub(crate) use self::ceilings::Ceilings;
pub(crate) use self::sample::Sample;

use crate::service::registry::{Kind, Registry};
use crate::service::rejection::problem;

/// The most names of queues that are looked through.
const NAMES_MAX: usize = 100_000;
const PAGE: u16 = 1_000;
/// How often what a namespace holds is measured while something is published to it, at most; a namespace of many queues is
/// measured for no more than a tenth of the time.
const MEASURED_EVERY: Duration = Duration::from_secs(5);
const SHARE: u32 = 10;
/// The most namespaces that are kept measured.
const MEASURED_MAX: usize = 10_000;

/// What the services know of namespaces.
pub(crate) struct Namespaces {
    client: Client,
    registry: Arc<Registry>,
    measured: std::sync::Mutex<HashMap<Namespace, Arc<Mutex<Option<Measured>>>>>,
}

/// What a namespace held at one time, and what this process has let in since.
struct Measured {
    sample: Sample,
    at: Instant,
    took: Duration,
}

/// The queues that there are.
pub(crate) struct Names {
    pub(crate) queues: Vec<QueueName>,
    /// Whether there are more than could be looked through.
    pub(crate) is_cut: bool,
}

impl Namespaces {
    pub(crate) fn new(client: Client, registry: Arc<Registry>) -> Namespaces {
        Namespaces { client, registry, measured: std::sync::Mutex::default() }
    }

    /// Lets jobs into a queue, unless its namespace would hold more than it may. Each process counts what it lets in itself,
    /// and learns of the rest every few seconds: so much more may come to be in the namespace.
    pub(crate) async fn admit(&self, queue: &QueueName, jobs: u64, bytes: u64) -> Result<(), Problem> {
        let Some(namespace) = queue.namespace() else { return Ok(()) };
        let ceilings = self.registry.latest().get::<Ceilings>(Kind::Namespace, namespace.as_str());
        let Some(ceilings) = ceilings else { return Ok(()) };
        let slot = self.slot(&namespace);
        let mut slot = slot.lock().await;
        let is_old = |measured: &Measured| measured.at.elapsed() >= MEASURED_EVERY.max(measured.took * SHARE);
        if slot.as_ref().is_none_or(is_old) {
            let at = Instant::now();
            let sample = self.sample(&namespace, |_| true).await.map_err(problem)?;
            *slot = Some(Measured { sample, at, took: at.elapsed() });
        }
        let Some(measured) = &mut *slot else { return Ok(()) };
        ceilings.check(&namespace, &measured.sample, queue, jobs, bytes)?;
        measured.sample.add(queue, jobs, bytes);
        Ok(())
    }

    /// How much a namespace may hold, if that is limited.
    pub(crate) async fn ceilings(&self, namespace: &Namespace) -> Result<Option<Ceilings>, Problem> {
        let entries = self.registry.current().await?;
        Ok(entries.get(Kind::Namespace, namespace.as_str()))
    }

    /// Limits how much a namespace may hold.
    pub(crate) async fn limit(&self, namespace: &Namespace, ceilings: Ceilings) -> Result<(), Problem> {
        Ok(self.registry.put(Kind::Namespace, namespace.as_str(), &ceilings).await?)
    }

    /// Lets a namespace hold what it likes; answers whether it was limited.
    pub(crate) async fn unlimit(&self, namespace: &Namespace) -> Result<bool, Problem> {
        Ok(self.registry.remove(Kind::Namespace, namespace.as_str()).await?)
    }

    /// The namespaces with a queue that is `such`, or with ceilings, and the number of those queues; the default namespace is
    /// the one without a name.
    pub(crate) async fn list(
        &self,
        such: impl Fn(&QueueName) -> bool,
    ) -> Result<(BTreeMap<String, u64>, bool), Problem> {
        let Names { queues, is_cut } = names(&self.client).await.map_err(problem)?;
        let mut found = BTreeMap::new();
        for queue in queues.iter().filter(|queue| such(queue)) {
            let namespace = queue.namespace().map_or_else(String::new, |namespace| namespace.to_string());
            *found.entry(namespace).or_default() += 1;
        }
        Ok((found, is_cut))
    }

    /// What those queues of a namespace hold that are `such`.
    pub(crate) async fn sample(
        &self,
        namespace: &Namespace,
        such: impl Fn(&QueueName) -> bool,
    ) -> Result<Sample, Error> {
        let names = names(&self.client).await?;
        let queues = names.queues.into_iter().filter(|queue| namespace.contains(queue) && such(queue));
        Sample::of(&self.client, queues.collect()).await
    }

    fn slot(&self, namespace: &Namespace) -> Arc<Mutex<Option<Measured>>> {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        if measured.len() >= MEASURED_MAX && !measured.contains_key(namespace) {
            measured.clear();
        }
        Arc::clone(measured.entry(namespace.clone()).or_default())
    }
}

/// The names of the queues, up to [`NAMES_MAX`].
pub(crate) async fn names(client: &Client) -> Result<Names, Error> {
    let (mut queues, mut cursor) = (std::collections::BTreeSet::new(), None);
    loop {
        let page = client.queues(cursor.as_ref(), PAGE).await?;
        queues.extend(page.items);
        cursor = page.next;
        if cursor.is_none() || queues.len() >= NAMES_MAX {
            return Ok(Names { queues: queues.into_iter().collect(), is_cut: cursor.is_some() });
        }
    }
}
