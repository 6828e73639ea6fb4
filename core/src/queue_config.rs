use alloc::string::{String, ToString};

use serde::{Deserialize, Serialize};

use crate::{Backoff, ConfigError, DELAY_MAX_MS, Forward};

/// What a queue says of its jobs where they say nothing themselves. It reaches jobs already waiting, from their next
/// delivery on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueConfig {
    /// The most attempts, 1 to 999; 10 if not set.
    pub attempts: Option<u16>,
    /// The delay before another attempt; exponential from 1 s to 1 h with 10 % jitter if not set.
    pub backoff: Option<Backoff>,
    /// How long dead letters are kept; for ever if not set.
    pub retention_ms: Option<u64>,
    /// Jobs that expire become dead letters instead of being dropped.
    pub bury_expired: bool,
    /// The most jobs, dead letters included; the publisher's ceiling if not set, 0 for no limit.
    pub max_jobs: Option<u64>,
    /// The most bytes of records, estimated; the publisher's ceiling if not set, 0 for no limit.
    pub max_bytes: Option<u64>,
    /// Due jobs go to a Redis list or stream instead of consumers of this queue.
    pub forward: Option<Forward>,
    /// How its jobs are pushed to a URL, as text of at most 4 KiB that whoever pushes them reads. Neither scripts nor
    /// engines look into it.
    pub push: Option<String>,
}

/// The most bytes of [`QueueConfig::push`].
const PUSH_BYTES: usize = 4_096;

impl QueueConfig {
    /// Checks every field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = |field, value: Option<u64>, low: u64, high: u64, allowed| match value {
            Some(value) if !(low..=high).contains(&value) => Err(ConfigError { field, value, allowed }),
            _ => Ok(()),
        };
        check("attempts", self.attempts.map(u64::from), 1, 999, "1 to 999")?;
        check("retention", self.retention_ms, 1, DELAY_MAX_MS, "1 ms to 10 years")?;
        check("max_jobs", self.max_jobs, 0, 1 << 50, "0 (no limit) to 2^50")?;
        check("max_bytes", self.max_bytes, 0, 1 << 50, "0 (no limit) to 2^50")?;
        let own = self.forward.as_ref().is_some_and(Forward::is_delaylines_own);
        check(
            "forward",
            own.then_some(0),
            1,
            1,
            "a key that is not one of delayline's own, {PREFIX}:config or {PREFIX:N.N}:…: on a cluster write KEY{PREFIX:N.N}",
        )?;
        let push_bytes = self.push.as_ref().map(|push| push.len() as u64);
        check("push", push_bytes, 1, PUSH_BYTES as u64, "a text of 1 to 4096 bytes")?;
        let readable =
            self.backoff.as_ref().is_none_or(|backoff| backoff.to_string().parse() == Ok(backoff.clone()));
        check("backoff", (!readable).then_some(0), 1, 1, "a backoff that its text form can express")
    }
}
