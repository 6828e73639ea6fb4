use crate::{Backoff, Forward};

/// What a queue says of its jobs where they say nothing themselves. It reaches jobs already waiting, from their next
/// delivery on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
}
