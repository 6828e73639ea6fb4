//! How a job of lmstfy's is kept as one of ours.

use std::time::Duration;

use bytes::Bytes;
use delayline_core::{ATTEMPTS, DELAY_MAX_MS};
use delayline_tokio::{Backoff, JobId, Publish, Queue, UnixMs};
use ulid::{ULID_LEN, Ulid};

use super::attributes::Attributes;

/// What the names of headers begin with that hold attributes.
const ATTRIBUTE: &str = "lmstfy-attr-";
/// The header that holds the TTL in seconds, counted from publishing; 0 is for ever.
const TTL: &str = "lmstfy-ttl";

/// A job to be kept.
pub(super) struct NewJob {
    pub(super) id: JobId,
    pub(super) body: Bytes,
    /// Without the TTL.
    pub(super) headers: Vec<(String, String)>,
    /// What the queue's codec says if not set.
    pub(super) content_type: Option<String>,
    pub(super) delay: Duration,
    /// In seconds; 0 is for ever.
    pub(super) ttl: u64,
    /// Deliveries in all; more than there may be attempts are as many as there may be.
    pub(super) tries: u16,
}

impl NewJob {
    /// The job as it is to be published: after a lease that ended it is ready again at once.
    pub(super) fn publish(self, queue: &Queue) -> Publish {
        let NewJob { id, body, headers, content_type, delay, ttl, tries } = self;
        // What is longer than a TTL may be ends no sooner than asked.
        let ttl = Some(ttl).filter(|ttl| (1..=DELAY_MAX_MS / 1_000).contains(ttl));
        let publish = queue.publish(&body).id(id).delay(delay).attempts(tries.min(*ATTEMPTS.end()));
        let publish = publish.backoff(Backoff::None).lost_delay(Duration::ZERO);
        let publish = publish.header(TTL, ttl.unwrap_or_default().to_string());
        let publish = match ttl {
            Some(seconds) => publish.ttl(Duration::from_secs(seconds)),
            None => publish,
        };
        let publish = match content_type {
            Some(media_type) => publish.content_type(media_type),
            None => publish,
        };
        headers.into_iter().fold(publish, |publish, (name, value)| publish.header(name, value))
    }
}

/// The headers that hold attributes.
pub(super) fn headers(attributes: &Attributes) -> Vec<(String, String)> {
    attributes.iter().map(|(key, value)| ([ATTRIBUTE, key].concat(), value.clone())).collect()
}

/// All headers but the one that holds the TTL.
pub(super) fn without_ttl(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    headers.into_iter().filter(|(name, _)| name != TTL).collect()
}

/// The attributes among a job's headers.
pub(super) fn attributes(headers: &[(String, String)]) -> Attributes {
    let attributes = headers.iter().filter_map(|(name, value)| Some((name.strip_prefix(ATTRIBUTE)?, value)));
    attributes.map(|(key, value)| (key.to_owned(), value.clone())).collect()
}

/// When a job expires, as far as its headers say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expires {
    At(UnixMs),
    Never,
    /// They do not: the job was not published by this API.
    Unsaid,
}

/// When a job expires that was published then.
pub(super) fn expires(headers: &[(String, String)], published: UnixMs) -> Expires {
    let ttl = headers.iter().find(|(name, _)| name == TTL);
    match ttl.and_then(|(_, ttl)| ttl.parse::<u64>().ok()) {
        None => Expires::Unsaid,
        Some(0) => Expires::Never,
        Some(ttl) => Expires::At(UnixMs(published.0.saturating_add(ttl.saturating_mul(1_000)))),
    }
}

/// How long ago a job was published, by its id if that is one of lmstfy's, and else by its record.
pub(super) fn elapsed_ms(id: &JobId, published: UnixMs, now: UnixMs) -> u64 {
    let published = drawn(id.as_str()).filter(|drawn| *drawn <= now).unwrap_or(published);
    now.0.saturating_sub(published.0)
}

/// When an id was drawn: a ULID, or a digit and a ULID.
fn drawn(id: &str) -> Option<UnixMs> {
    let ulid = match id.len().checked_sub(ULID_LEN)? {
        0 => id,
        1 => id.strip_prefix(|first: char| first.is_ascii_digit())?,
        _ => return None,
    };
    Ulid::from_string(ulid).ok().map(|ulid| UnixMs(ulid.timestamp_ms()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_job_is_that_of_its_ulid() {
        let ulid = Ulid::from_parts(1_000, 5).to_string();
        let elapsed = |id: &str, now| elapsed_ms(&id.parse().unwrap(), UnixMs(1_500), UnixMs(now));
        assert_eq!(elapsed(&ulid, 2_000), 1_000);
        assert_eq!(elapsed(&format!("1{ulid}"), 2_000), 1_000);
        assert_eq!(elapsed(&format!("x{ulid}"), 2_000), 500);
        assert_eq!(elapsed("order-17", 2_000), 500);
        assert_eq!(elapsed("order-17", 1_000), 0);
        assert_eq!(elapsed(&Ulid::from_parts(9_000, 5).to_string(), 2_000), 500);
    }

    #[test]
    fn a_header_says_when_a_job_expires() {
        let headers = |ttl: &str| [(TTL.to_owned(), ttl.to_owned())];
        assert_eq!(expires(&headers("2"), UnixMs(500)), Expires::At(UnixMs(2_500)));
        assert_eq!(expires(&headers("0"), UnixMs(500)), Expires::Never);
        assert_eq!(expires(&headers("x"), UnixMs(500)), Expires::Unsaid);
        assert_eq!(expires(&[], UnixMs(500)), Expires::Unsaid);
    }
}
