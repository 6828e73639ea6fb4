use delayline_core::{Job, Verdict};
use delayline_http::Taken;
use futures_util::future::LocalBoxFuture;
use worker::{Env, QueueContentType, RawMessageBuilder};

use super::deliver::{Courier, Target};

/// Delivers to the Cloudflare Queue of a binding.
pub(super) struct HandOver {
    pub(super) binding: String,
}

impl Target for HandOver {
    fn deliver<'a>(&'a self, courier: &'a Courier<'_>, job: Job) -> LocalBoxFuture<'a, Verdict> {
        Box::pin(courier.in_time(send(courier.env, &self.binding, job)))
    }
}

/// Sends the job as `take` answers it, less the lease: that is spent.
async fn send(env: &Env, binding: &str, job: Job) -> Result<(), worker::Error> {
    let mut message = serde_json::to_value(Taken::from(job))?;
    if let Some(fields) = message.as_object_mut() {
        fields.remove("lease");
        fields.remove("lease_ends");
    }
    let message = js_sys::JSON::parse(&message.to_string())?;
    let message = RawMessageBuilder::new(message).build_with_content_type(QueueContentType::Json);
    env.queue(binding)?.send_raw(message).await
}
