use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use delayline_core::{Job, QueueName, Reason, Verdict};
use futures_util::future::LocalBoxFuture;
use worker::{Env, QueueContentType, RawMessageBuilder};

use crate::redis::Deliver;

/// Where the jobs of each queue go.
pub(super) type Targets = BTreeMap<QueueName, Target>;

/// Where the jobs of a queue go.
#[derive(Clone)]
pub(super) enum Target {
    Handler(Rc<dyn Fn(Job) -> LocalBoxFuture<'static, Verdict>>),
    Queue(String),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Handler(_) => f.write_str("Handler"),
            Target::Queue(binding) => f.debug_tuple("Queue").field(binding).finish(),
        }
    }
}

/// Delivers within one invocation.
pub(super) struct Courier<'a> {
    pub(super) env: &'a Env,
    pub(super) targets: &'a Targets,
}

impl Deliver for Courier<'_> {
    async fn deliver(&self, job: Job) -> Verdict {
        match self.targets.get(&job.lease.queue) {
            Some(Target::Handler(handler)) => handler(job).await,
            Some(Target::Queue(binding)) => match hand_over(self.env, binding, &job).await {
                Ok(()) => Verdict::Ack,
                Err(error) => Verdict::Nack { after_ms: None, reason: Reason::new(&error.to_string()) },
            },
            None => Verdict::Release,
        }
    }
}

async fn hand_over(env: &Env, binding: &str, job: &Job) -> Result<(), worker::Error> {
    let text = String::from_utf8_lossy(&job.body).into_owned();
    let message = RawMessageBuilder::new(text.into()).build_with_content_type(QueueContentType::Text);
    env.queue(binding)?.send_raw(message).await
}
