use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Backoff, Ceiling, Compression, QueueName, Shards};

/// The longest poll and pump lease that suit the scripts, which forget after 10 min who waits, and announce heads less than
/// 15 s ahead.
const SCRIPTS: [(u64, &str); 2] = [(540_000, "100 to 540,000"), (30_000, "1,000 to 30,000")];
/// The longest that suit a store whose clock is the engine's, and whose owner sets its pace.
const SAME_CLOCK: [(u64, &str); 2] = [(86_400_000, "100 to 86,400,000"), (86_400_000, "1,000 to 86,400,000")];

/// What an engine is to do, and its limits. [`Config::default`] suits a producer; times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The deployment's shards.
    pub shards: Shards,
    /// The queues whose jobs are managed here.
    pub subscriptions: Vec<Subscription>,
    /// How many managed jobs may run at once, over all queues.
    pub slots: u16,
    /// Whether this engine tends shards.
    pub pump: Pumping,
    /// How long the leases of managed jobs last; 1 s to 24 h. They are renewed at a third.
    pub lease_ms: u64,
    /// The most jobs asked for at once; 1 to 256.
    pub reserve_max: u16,
    /// The most bytes of records asked for at once.
    pub reserve_bytes: u64,
    /// How often an idle queue is asked; 9 min at most, unless the clock is the same.
    pub poll_ms: u64,
    /// How long the pump lease lasts; 30 s at most, unless the clock is the same.
    pub pump_lease_ms: u64,
    /// When an answer is overdue.
    pub flight_ms: u64,
    /// What waits for company on its way to the store.
    pub pacing: Pacing,
    /// How long it waits at most; 0 to 20.
    pub gap_ms: u64,
    /// How long after its first transmission a batch may be sent again; 9 min at most, within the scripts' memory of 10.
    pub resend_ms: u64,
    /// The most jobs accepted and not yet answered.
    pub pending_jobs: usize,
    /// The most bytes of them.
    pub pending_bytes: usize,
    /// The most requests, and the most takes, not yet answered.
    pub pending_requests: usize,
    /// Whether bodies are written compressed, and from what size on.
    pub compression: Compression,
    /// The largest body that is read.
    pub body_limit: usize,
    /// What a queue may hold if its config does not say.
    pub ceiling: Ceiling,
    /// The delay before another attempt, if neither job nor queue says.
    pub backoff: Backoff,
    /// What backoff jitter is drawn from beside job and attempt.
    pub salt: u64,
    /// Whether the engine's clock and the store's are the same, in whole milliseconds, as in a test that holds the time:
    /// then the engine asks in the very millisecond. Such a store's pace is what its owner made it.
    pub same_clock: bool,
}

/// What waits for company on its way to the store, for [`Config::gap_ms`] at most. What comes after a pause leaves at once, and
/// so does a full batch. Where round trips are counted, and where the clock is the store's, nothing waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pacing {
    /// Acknowledgements of managed jobs, for whatever else is sent: nobody waits for them.
    #[default]
    Punctual,
    /// Publishes, verdicts, and what asks for managed jobs: all that came within a gap is one round trip. Jobs start later
    /// by up to a gap, and so do confirmations come.
    Thrifty,
}

/// A queue whose jobs are managed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Which queue.
    pub queue: QueueName,
    /// Its share of the slots, beside the other queues'; 1 to 100.
    pub weight: u16,
    /// The most of its jobs at once; at least 1.
    pub max: u16,
}

/// When an engine tends shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pumping {
    /// Never: a producer.
    Never,
    /// While a take waits.
    WhileTaking,
    /// Once, where something is due: a run that cron starts. It takes the pump lease only there, looks at its own queues'
    /// first due times instead of asking each, and arms for what it has seen, whoever holds the lease. Such an engine polls
    /// nothing: when nothing it has seen is left, [`poll_timeout`](crate::Engine::poll_timeout) is far off.
    WhenDue,
    /// Always: a worker or a service.
    Always,
}

/// A config that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("config: {field} is {value}, but must be {allowed}")]
pub struct ConfigError {
    /// Which field.
    pub field: &'static str,
    /// What it is.
    pub value: u64,
    /// What it may be.
    pub allowed: &'static str,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            shards: Shards::default(),
            subscriptions: Vec::new(),
            slots: 0,
            pump: Pumping::Never,
            lease_ms: 30_000,
            reserve_max: 100,
            reserve_bytes: 1 << 20,
            poll_ms: 30_000,
            pump_lease_ms: 30_000,
            flight_ms: 5_000,
            pacing: Pacing::Punctual,
            gap_ms: 10,
            resend_ms: 540_000,
            pending_jobs: 4_096,
            pending_bytes: 64 << 20,
            pending_requests: 4_096,
            compression: Compression::default(),
            body_limit: crate::BODY_LIMIT,
            ceiling: Ceiling { jobs: 2_000_000, bytes: 0 },
            backoff: Backoff::default(),
            salt: 0,
            same_clock: false,
        }
    }
}

impl Config {
    /// Checks every field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = |field, value: u64, low: u64, high: u64, allowed| {
            if (low..=high).contains(&value) { Ok(()) } else { Err(ConfigError { field, value, allowed }) }
        };
        check("lease_ms", self.lease_ms, 1_000, 86_400_000, "1,000 to 86,400,000")?;
        check("reserve_max", self.reserve_max.into(), 1, 256, "1 to 256")?;
        check("reserve_bytes", self.reserve_bytes, 4_096, 64 << 20, "4,096 to 67,108,864")?;
        let [(longest_poll, polls), (longest_lease, leases)] =
            if self.same_clock { SAME_CLOCK } else { SCRIPTS };
        check("poll_ms", self.poll_ms, 100, longest_poll, polls)?;
        check("pump_lease_ms", self.pump_lease_ms, 1_000, longest_lease, leases)?;
        check("flight_ms", self.flight_ms, 10, 60_000, "10 to 60,000")?;
        check("gap_ms", self.gap_ms, 0, 20, "0 to 20")?;
        check("resend_ms", self.resend_ms, 1_000, 540_000, "1,000 to 540,000")?;
        check("pending_jobs", self.pending_jobs as u64, 1, 1 << 20, "1 to 1,048,576")?;
        check("pending_bytes", self.pending_bytes as u64, 1 << 16, 1 << 32, "65,536 to 4,294,967,296")?;
        check("pending_requests", self.pending_requests as u64, 1, 1 << 20, "1 to 1,048,576")?;
        if self.pump == Pumping::WhenDue {
            check(
                "subscriptions",
                self.subscriptions.len() as u64,
                0,
                64,
                "at most 64 when it pumps what is due",
            )?;
        }
        if !self.subscriptions.is_empty() {
            check("slots", self.slots.into(), 1, 10_000, "1 to 10,000")?;
        }
        for subscription in &self.subscriptions {
            check("weight", subscription.weight.into(), 1, 100, "1 to 100")?;
            check("max", subscription.max.into(), 1, 10_000, "1 to 10,000")?;
        }
        Ok(())
    }
}
