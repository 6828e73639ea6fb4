use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use delayline_core::{Job as Delivery, QueueName, Take};
use tracing::Instrument;

use crate::Error;
use crate::client::Office;
use crate::invalid::millis;

/// Jobs about to be taken: await it.
///
/// The queues are asked in the order given; the first that has due jobs answers, alone. If none has, the take waits on
/// all of them. The jobs are settled by their leases, which nobody renews. When the future is dropped before it ends,
/// jobs that come for it are given back unspent.
#[must_use = "jobs are taken when this is awaited"]
pub struct Taking {
    office: Arc<Office>,
    queues: Vec<QueueName>,
    count: u16,
    lease: Duration,
    wait: Duration,
}

impl Taking {
    pub(crate) fn new(office: Arc<Office>, queues: Vec<QueueName>) -> Taking {
        Taking { office, queues, count: 1, lease: Duration::from_secs(30), wait: Duration::ZERO }
    }

    /// At most so many, 1 to 256; one if not called.
    pub fn count(mut self, count: u16) -> Taking {
        self.count = count;
        self
    }

    /// How long the leases last, 1 s to 24 h; 30 s if not called.
    pub fn lease(mut self, lease: Duration) -> Taking {
        self.lease = lease;
        self
    }

    /// How long to wait for a job, at most 5 min; not at all if not called. If none came the answer is empty, or
    /// [`Error::NotSent`] if Redis did not answer.
    pub fn wait(mut self, wait: Duration) -> Taking {
        self.wait = wait;
        self
    }

    async fn take(self) -> Result<Vec<Delivery>, Error> {
        let take = Take {
            queues: self.queues,
            count: self.count,
            lease_ms: millis(self.lease),
            wait_ms: millis(self.wait),
        };
        take.validate()?;
        self.office.desk.take(take, self.wait.saturating_add(self.office.limits.timeout)).await
    }
}

impl IntoFuture for Taking {
    type Output = Result<Vec<Delivery>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Vec<Delivery>, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let span = tracing::debug_span!("take", queues = ?self.queues, count = self.count);
        Box::pin(self.take().instrument(span))
    }
}
