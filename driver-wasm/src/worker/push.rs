use delayline_core::{Job, Verdict};
use delayline_http::push::{self, Outcome, Push, verdict};
use futures_util::future::LocalBoxFuture;

use super::deliver::{Courier, Target};
use crate::fetch::Post;
use crate::rest::Cut;
use crate::timer;

impl Target for Push {
    fn deliver<'a>(&'a self, courier: &'a Courier<'_>, job: Job) -> LocalBoxFuture<'a, Verdict> {
        Box::pin(post(self, courier.delivery_ms, job))
    }
}

async fn post(push: &Push, timeout_ms: u64, job: Job) -> Verdict {
    let request = match push.request(&job, timer::wall()) {
        Ok(request) => request,
        Err(unsendable) => return unsendable.into(),
    };
    let post = Post {
        url: request.url.as_str(),
        headers: request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        body: &request.body,
        timeout_ms,
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
        Err(Cut::TimedOut) => verdict(&Outcome::TimedOut { after_ms: timeout_ms }, timer::wall()),
        Err(Cut::Failed(why)) => verdict(&Outcome::Failed(&why), timer::wall()),
    }
}
