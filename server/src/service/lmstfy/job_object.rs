use base64ct::{Base64, Encoding};
use delayline_tokio::{Delivery, Inspected, QueueName, UnixMs};
use serde::Serialize;

use super::attributes::Attributes;
use super::stored;
use crate::service::tokens::now;

/// The attempts that a job has which says nothing of them, unless its queue does: such a job is not lmstfy's.
const TRIES: u16 = 10;

/// A job as lmstfy's clients read it; its fields are in the order of their names.
#[derive(Debug, Serialize)]
pub(super) struct JobObject {
    attributes: Option<Attributes>,
    data: String,
    elapsed_ms: u64,
    job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<&'static str>,
    namespace: String,
    queue: String,
    remain_tries: u16,
    ttl: u64,
}

impl JobObject {
    /// A job that is handed out, and expires then.
    pub(super) fn delivered(job: &Delivery, expires: Option<UnixMs>) -> JobObject {
        let now = now();
        JobObject {
            attributes: shown(stored::attributes(&job.headers)),
            data: Base64::encode_string(&job.body),
            elapsed_ms: stored::elapsed_ms(&job.lease.id, job.published, now),
            job_id: job.lease.id.to_string(),
            msg: Some("new job"),
            namespace: namespace(&job.lease.queue),
            queue: job.lease.queue.own().to_owned(),
            remain_tries: job.max_attempts.saturating_sub(job.attempt),
            ttl: ttl(expires, now),
        }
    }

    /// A job that stays where it is. One that is looked for by its id shows no tries.
    pub(super) fn peeked(queue: &QueueName, job: &Inspected, shows_tries: bool) -> JobObject {
        let (now, contents) = (now(), job.contents.as_ref().ok());
        let published = contents.map_or(now, |contents| contents.published);
        let left = job.max_attempts().unwrap_or(TRIES).saturating_sub(job.attempt());
        JobObject {
            attributes: contents.and_then(|contents| shown(stored::attributes(&contents.headers))),
            data: contents.map(|contents| Base64::encode_string(&contents.body)).unwrap_or_default(),
            elapsed_ms: stored::elapsed_ms(&job.id, published, now),
            job_id: job.id.to_string(),
            msg: None,
            namespace: namespace(queue),
            queue: queue.own().to_owned(),
            remain_tries: if shows_tries { left } else { 0 },
            ttl: ttl(job.expires, now),
        }
    }
}

fn namespace(queue: &QueueName) -> String {
    queue.namespace().map(|namespace| namespace.to_string()).unwrap_or_default()
}

fn shown(attributes: Attributes) -> Option<Attributes> {
    (!attributes.is_empty()).then_some(attributes)
}

/// How long until then, in seconds, rounded as Redis rounds a TTL; 0 is for ever.
fn ttl(expires: Option<UnixMs>, now: UnixMs) -> u64 {
    expires.map_or(0, |expires| (expires.0.saturating_sub(now.0) + 500) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_rounded() {
        for (ms, seconds) in [(0, 0), (499, 0), (500, 1), (1_499, 1), (1_500, 2)] {
            assert_eq!(ttl(Some(UnixMs(1_000 + ms)), UnixMs(1_000)), seconds, "{ms}");
        }
        assert_eq!(ttl(Some(UnixMs(1)), UnixMs(1_000)), 0);
        assert_eq!(ttl(None, UnixMs(1_000)), 0);
    }
}
