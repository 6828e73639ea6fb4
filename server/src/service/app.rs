use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use delayline_http::body::PayloadLimit;
use delayline_http::{Draft, Problem, unpublished};
use delayline_tokio::{Client, Error, Inspected, JobId, Published, QueueName, Stats, UnixMs};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::timeout;

use crate::service::audit::Audit;
use crate::service::forwarding::Forwarding;
use crate::service::limits::Patience;
use crate::service::namespaces::Namespaces;
use crate::service::peers::Peers;
use crate::service::push::PushStates;
use crate::service::rejection::problem;
use crate::service::site::Site;
use crate::service::tokens::Tokens;
use crate::service::{draft, metrics, recorder};

const QUEUES_MEASURED: usize = 200;
const MEASURED_EVERY: Duration = Duration::from_secs(15);
const MEASURED_WITHIN: Duration = Duration::from_secs(5);
const MEASURED_AT_ONCE: usize = 16;

/// How many jobs are on their way at once of all batches in lines: about a round trip's, so that a job that is published by
/// itself waits for no more of them.
pub(crate) const LINES_UNDER_WAY: usize = 256;

pub(crate) type Shared = Arc<App>;

/// What the routes share.
pub(crate) struct App {
    pub(crate) client: Client,
    pub(crate) max_payload: PayloadLimit,
    pub(crate) forwarding: Forwarding,
    pub(crate) site: Site,
    pub(crate) peers: Arc<Peers>,
    pub(crate) patience: Patience,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) audit: Audit,
    pub(crate) push: PushStates,
    /// For each job of a batch in lines that is on its way.
    pub(crate) lines: Semaphore,
    pub(crate) measured: Mutex<Option<Measured>>,
    pub(crate) closing: watch::Receiver<bool>,
}

pub(crate) struct Measured {
    at: Instant,
    text: String,
}

/// This machine's clock.
fn wall() -> UnixMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl App {
    /// Ends once the service shuts down.
    pub(crate) async fn closing(&self) {
        let _ = self.closing.clone().wait_for(|closing| *closing).await;
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Publishes a job.
    pub(crate) async fn publish(&self, queue: &QueueName, draft: Draft) -> Result<Published, Problem> {
        let is_named = draft.id.is_some();
        self.namespaces.admit(queue, 1, draft.body.len() as u64).await?;
        let queue = self.client.bytes(queue).map_err(problem)?;
        let published = draft::publish(draft, &queue).await;
        published.map_err(|error| unpublished(problem(error), is_named))
    }

    /// Publishes jobs together, and answers in their order.
    pub(crate) async fn publish_all(
        &self,
        queue: &QueueName,
        drafts: Vec<Draft>,
    ) -> Result<Vec<Result<Published, Problem>>, Problem> {
        let bytes = drafts.iter().map(|draft| draft.body.len() as u64).sum();
        self.namespaces.admit(queue, drafts.len() as u64, bytes).await?;
        let queue = self.client.bytes(queue).map_err(problem)?;
        let named: Vec<bool> = drafts.iter().map(|draft| draft.id.is_some()).collect();
        let published =
            queue.publish_all(drafts.into_iter().map(|draft| draft::publish(draft, &queue))).await;
        let outcomes = published.into_iter().zip(named);
        Ok(outcomes
            .map(|(published, is_named)| published.map_err(|error| unpublished(problem(error), is_named)))
            .collect())
    }

    /// A job in its queue, whatever its state.
    pub(crate) async fn inspect(&self, queue: &QueueName, id: &JobId) -> Result<Option<Inspected>, Problem> {
        let queue = self.client.bytes(queue).map_err(problem)?;
        queue.inspect(id).await.map_err(problem)
    }

    /// All metrics as Prometheus text; queues are measured anew when what is known of them is old.
    pub(crate) async fn metrics(&self) -> String {
        let mut text = recorder::render();
        let mut measured = self.measured.lock().await;
        let stale = measured.as_ref().is_none_or(|measured| measured.at.elapsed() >= MEASURED_EVERY);
        if stale {
            *measured = Some(Measured { at: Instant::now(), text: self.measure().await });
        }
        text.push_str(measured.as_ref().map_or("", |measured| &measured.text));
        text
    }

    async fn measure(&self) -> String {
        let queues = timeout(MEASURED_WITHIN, self.stats())
            .await
            .unwrap_or_else(|_| Err(Error::Unknown { address: self.client.address().to_owned() }));
        let mut text = String::new();
        metrics::build_info(&mut text);
        metrics::single(&mut text, "delayline_up", "Whether the store answered.", queues.is_ok().into());
        match queues {
            Ok(queues) => text.push_str(&metrics::render_queues(&queues, wall())),
            Err(error) => tracing::warn!(%error, "queues cannot be measured"),
        }
        text
    }

    async fn stats(&self) -> Result<Vec<(QueueName, Stats)>, Error> {
        let (mut names, mut cursor) = (BTreeSet::new(), None);
        while names.len() < QUEUES_MEASURED {
            let page = self.client.queues(cursor.as_ref(), 200).await?;
            names.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let stats = names.into_iter().take(QUEUES_MEASURED).map(|name| async move {
            let stats = self.client.bytes(&name)?.stats(0).await?;
            Ok((name, stats))
        });
        stream::iter(stats).buffered(MEASURED_AT_ONCE).try_collect().await
    }
}
