use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use delayline_core::{Job, QueueName, Reason, Verdict};
use delayline_http::Taken;
use delayline_http::push::{self, Outcome, Push, verdict};
use futures_util::future::{Either, LocalBoxFuture, select};
use worker::{Env, QueueContentType, RawMessageBuilder};

use super::verdict::IntoVerdict;
use crate::fetch::Post;
use crate::redis::Deliver;
use crate::rest::Cut;
use crate::timer;

/// Where the jobs of each queue go.
pub(super) type Targets = BTreeMap<QueueName, Target>;

/// Where the jobs of a queue go.
#[derive(Clone)]
pub(super) enum Target {
    Handler(Rc<dyn Fn(Job) -> LocalBoxFuture<'static, Verdict>>),
    Push(Rc<Push>),
    Queue(String),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Handler(_) => f.write_str("Handler"),
            Target::Push(push) => f.debug_tuple("Push").field(push).finish(),
            Target::Queue(binding) => f.debug_tuple("Queue").field(binding).finish(),
        }
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
            Some(Target::Push(push)) => self.push(push, &job).await,
            Some(Target::Handler(handler)) => self.in_time(handler(job)).await,
            Some(Target::Queue(binding)) => self.in_time(hand_over(self.env, binding, job)).await,
            None => Verdict::Release,
        }
    }
}

impl Courier<'_> {
    async fn in_time<O: IntoVerdict>(&self, delivery: impl Future<Output = O>) -> Verdict {
        match select(pin!(delivery), pin!(timer::sleep(self.delivery_ms))).await {
            Either::Left((done, _)) => done.into_verdict(),
            Either::Right(_) => {
                let reason = format!("no verdict within {} ms", self.delivery_ms);
                Verdict::Nack { after_ms: None, reason: Reason::new(&reason) }
            }
        }
    }

    async fn push(&self, push: &Push, job: &Job) -> Verdict {
        let request = match push.request(job, timer::wall()) {
            Ok(request) => request,
            Err(unsendable) => return unsendable.into(),
        };
        let post = Post {
            url: request.url.as_str(),
            headers: request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            body: &request.body,
            timeout_ms: self.delivery_ms,
        };
        match post.send(None).await {
            Ok(got) => {
                let status = got.status();
                let limit = if status < 300 { 0 } else { push::BODY_BYTES };
                let body = got.beginning(limit).await;
                let retry_after = got.header("retry-after");
                let retry_after = retry_after.as_deref().map(str::as_bytes);
                verdict(&Outcome::Answered { status, retry_after, body: &body }, timer::wall())
            }
            Err(Cut::TimedOut) => verdict(&Outcome::TimedOut { after_ms: self.delivery_ms }, timer::wall()),
            Err(Cut::Failed(why)) => verdict(&Outcome::Failed(&why), timer::wall()),
        }
    }
}

/// Sends the job as `take` answers it, less the lease: that is spent.
async fn hand_over(env: &Env, binding: &str, job: Job) -> Result<(), worker::Error> {
    let mut message = serde_json::to_value(Taken::from(job))?;
    if let Some(fields) = message.as_object_mut() {
        fields.remove("lease");
        fields.remove("lease_ends");
    }
    let message = js_sys::JSON::parse(&message.to_string())?;
    let message = RawMessageBuilder::new(message).build_with_content_type(QueueContentType::Json);
    env.queue(binding)?.send_raw(message).await
}
