use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use delayline_core::{Job, QueueName, Reason, Verdict};
use futures_util::future::{Either, LocalBoxFuture, select};
use litemap::LiteMap;
use worker::Env;

use super::verdict::IntoVerdict;
use crate::redis::Deliver;
use crate::timer;

/// Where the jobs of each queue go.
pub(super) type Targets = LiteMap<QueueName, Rc<dyn Target>>;

/// Where the jobs of a queue go. An object, so that a worker links no way to deliver that it does not use.
pub(super) trait Target {
    fn deliver<'a>(&'a self, courier: &'a Courier<'_>, job: Job) -> LocalBoxFuture<'a, Verdict>;
}

impl fmt::Debug for dyn Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Target")
    }
}

/// Delivers within one invocation.
pub(super) struct Courier<'a> {
    pub(super) env: &'a Env,
    pub(super) targets: &'a Targets,
    /// How long an answer to a push may take.
    pub(super) delivery_ms: u64,
}

impl Deliver for Courier<'_> {
    async fn deliver(&self, job: Job) -> Verdict {
        match self.targets.get(&job.lease.queue) {
            Some(target) => target.deliver(self, job).await,
            None => Verdict::Release,
        }
    }
}

impl Courier<'_> {
    pub(super) async fn in_time<O: IntoVerdict>(&self, delivery: impl Future<Output = O>) -> Verdict {
        match select(pin!(delivery), pin!(timer::sleep(self.delivery_ms))).await {
            Either::Left((done, _)) => done.into_verdict(),
            Either::Right(_) => {
                let reason = format!("no verdict within {} ms", self.delivery_ms);
                Verdict::Nack { after_ms: None, reason: Reason::new(&reason) }
            }
        }
    }
}
