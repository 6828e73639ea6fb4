//! Jobs delivered by HTTP: the request that is made of a job, and what becomes of the job by what that is answered.
//!
//! Requests are [Standard Webhooks](https://www.standardwebhooks.com): a receiver checks them with any of its libraries,
//! or with [`Signed::verify`].
//!
//! ```
//! use delayline_core::{Job, UnixMs, Verdict};
//! use delayline_http::push::{Outcome, Push, verdict};
//!
//! fn deliver(push: &Push, job: &Job, now: UnixMs) -> Verdict {
//!     let request = match push.request(job, now) {
//!         Ok(request) => request,
//!         Err(unsendable) => return unsendable.into(),
//!     };
//!     // Here it is sent: a POST that follows no redirect.
//!     # let _ = request;
//!     let outcome = Outcome::Answered { status: 204, retry_after: None, body: b"" };
//!     verdict(&outcome, now)
//! }
//! ```

mod batch;
mod callback;
#[cfg(feature = "ed25519")]
mod ed25519;
mod queue_push;
mod rate;
mod request;
mod secret;
mod signed;
mod targets;
mod url;
mod verdict;

pub use batch::batch_verdicts;
pub use callback::{Answered, CALLBACK_BODY_BYTES, Callback, CallbackError, Callbacks};
pub use queue_push::{QueuePush, QueuePushError};
pub use rate::{Rate, RateError};
pub use request::{Push, Request, Unsendable};
pub use secret::{Secret, SecretError};
pub use signed::{Signed, Unverified};
pub use targets::{OwnUrls, TargetError, Targets};
pub use url::{Url, UrlError};
pub use verdict::{BODY_BYTES, Outcome, verdict};

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use delayline_core::{Fence, Job, Lease, Reason, UnixMs};

    /// A job at its second attempt.
    pub(super) fn job() -> Job {
        Job {
            held: None,
            lease: Lease {
                queue: "orders".parse().unwrap(),
                id: "order:17".parse().unwrap(),
                fence: Fence(1),
                retry_ms: 1_000,
            },
            attempt: 2,
            max_attempts: 10,
            deliveries: 2,
            due: UnixMs(1_795_255_205_000),
            lease_ends: UnixMs(1_795_255_235_000),
            late_ms: 3,
            published: UnixMs(1_795_255_200_000),
            content_type: Some("application/json".to_owned()),
            headers: Vec::new(),
            trace: None,
            last_reason: Reason::default(),
            body: Bytes::from_static(b"{\"a\":1}"),
        }
    }
}
