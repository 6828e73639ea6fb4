use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use delayline_core::{Held, Job, QueueName, Reason, Verdict};
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use crate::inbox::Signal;

pub(crate) type Handler = Arc<dyn Fn(Job) -> Pin<Box<dyn Future<Output = Verdict> + Send>> + Send + Sync>;

/// What runs the jobs of a worker's queues, on its caller's runtime.
pub(crate) struct Handlers {
    pub(crate) runtime: Handle,
    pub(crate) by_queue: HashMap<QueueName, Handler>,
}

impl Handlers {
    /// Begins to run a job; its verdict comes as a signal, whatever happens to the task.
    pub(crate) fn start(
        &self,
        held: Held,
        job: Job,
        signals: UnboundedSender<Signal>,
    ) -> Option<AbortHandle> {
        let ending = Ending { held, signals, verdict: Verdict::Release };
        let handler = self.by_queue.get(&job.lease.queue)?.clone();
        let task = self.runtime.spawn(async move {
            let mut ending = ending;
            let work = AssertUnwindSafe(async move { handler(job).await }).catch_unwind().await;
            ending.verdict = work.unwrap_or_else(|panic| panicked(&*panic));
        });
        Some(task.abort_handle())
    }
}

/// Tells the verdict when it is dropped: a task that was aborted gives its job back.
struct Ending {
    held: Held,
    signals: UnboundedSender<Signal>,
    verdict: Verdict,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let verdict = std::mem::replace(&mut self.verdict, Verdict::Release);
        let _ = self.signals.send(Signal::Settle(self.held, verdict));
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Verdict {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let reason = Reason::new(&format!("panicked: {}", text.unwrap_or("without a text")));
    Verdict::Nack { after_ms: None, reason }
}
