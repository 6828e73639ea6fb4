use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use delayline_core::{Held, Job as Delivery, QueueName, Verdict};
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::Instrument;

use crate::held::HeldTime;
use crate::inbox::Signal;
use crate::service::JobService;
use crate::worker::{LostLease, OnError};
use crate::{Context, Failure};

/// What runs the jobs of a worker's queues, on its caller's runtime.
pub(crate) struct Runner {
    pub(crate) runtime: Handle,
    pub(crate) routes: HashMap<QueueName, Route>,
    pub(crate) on_error: OnError,
    pub(crate) lost_lease: LostLease,
    pub(crate) held: Option<Arc<HeldTime>>,
}

/// How the jobs of a queue are run.
pub(crate) struct Route {
    /// Cloned on the runtime of the handlers: it is made of the user's code.
    pub(crate) service: Arc<JobService>,
    pub(crate) coder: Arc<dyn Any + Send + Sync>,
}

/// A job that is being run.
pub(crate) struct Running {
    task: AbortHandle,
    lost: CancellationToken,
}

impl Runner {
    /// Begins to run a job; its verdict comes as a signal, whatever happens to the task.
    pub(crate) fn start(
        &self,
        held: Held,
        run: Option<u64>,
        delivery: Delivery,
        signals: UnboundedSender<Signal>,
    ) -> Option<Running> {
        let Route { service, coder } = self.routes.get(&delivery.lease.queue)?;
        let (service, on_error, lost) = (service.clone(), self.on_error.clone(), CancellationToken::new());
        let ending = Ending {
            held,
            queue: delivery.lease.queue.clone(),
            signals,
            verdict: Verdict::Release,
            began: Instant::now(),
            run: run.zip(self.held.clone()),
        };
        let lease = &delivery.lease;
        let (id, queue, attempt) = (&lease.id, &lease.queue, delivery.attempt);
        let span = tracing::info_span!("handle", %queue, %id, attempt, trace = tracing::field::Empty);
        if let Some(trace) = &delivery.trace {
            span.record("trace", tracing::field::display(trace));
        }
        let context = Context::new(delivery, lost.clone(), coder.clone());
        let work = async move {
            let mut ending = ending;
            ending.verdict = verdict(service, on_error, context).await;
        };
        let task = self.runtime.spawn(work.instrument(span)).abort_handle();
        Some(Running { task, lost })
    }
}

impl Running {
    /// Its lease is lost.
    pub(crate) fn lose(&self, what: LostLease) {
        self.lost.cancel();
        if what == LostLease::Abort {
            self.task.abort();
        }
    }

    pub(crate) fn stop(&self) {
        self.lose(LostLease::Abort);
    }
}

async fn verdict(service: Arc<JobService>, on_error: OnError, context: Context) -> Verdict {
    let called = async { JobService::clone(&service).oneshot(context.clone()).await };
    let failure = match caught(called).await {
        Ok(Ok(verdict)) => return verdict,
        Ok(Err(error)) => Failure::from(error),
        Err(panicked) => panicked,
    };
    let judged = caught(async { judge(&on_error, &failure, &context) }).await;
    judged.unwrap_or_else(|panicked| judge(&None, &panicked, &context))
}

/// A panic in the user's code is a failure.
async fn caught<T>(code: impl Future<Output = T>) -> Result<T, Failure> {
    let ended = AssertUnwindSafe(code).catch_unwind().await;
    ended.map_err(|panic| Failure::panicked(text(&*panic)))
}

fn judge(on_error: &OnError, failure: &Failure, context: &Context) -> Verdict {
    let verdict = on_error.as_ref().and_then(|on_error| on_error(failure, context));
    let verdict = verdict.unwrap_or_else(|| failure.verdict());
    match &verdict {
        Verdict::Snooze { .. } | Verdict::Ack | Verdict::Release => {}
        Verdict::Nack { .. } => tracing::warn!(error = %failure, "the attempt failed"),
        Verdict::Bury { .. } => tracing::warn!(error = %failure, "the job is buried"),
    }
    verdict
}

/// Tells the verdict when it is dropped: a task that was aborted gives its job back.
struct Ending {
    held: Held,
    queue: QueueName,
    signals: UnboundedSender<Signal>,
    verdict: Verdict,
    began: Instant,
    run: Option<(u64, Arc<HeldTime>)>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let verdict = std::mem::replace(&mut self.verdict, Verdict::Release);
        let _ = self.signals.send(Signal::Settle {
            held: self.held,
            queue: self.queue.clone(),
            verdict,
            ran: self.began.elapsed(),
        });
        if let Some((run, time)) = &self.run {
            time.end(*run);
        }
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a text")
}
