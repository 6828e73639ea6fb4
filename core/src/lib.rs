//! A delayed-job queue as pure state machines.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;
mod clock;
mod command;
mod config;
mod engine;
mod event;
mod fence;
mod identity;
mod job;
mod job_id;
mod keyspace;
mod lease;
mod name;
mod queue_config;
mod reason;
mod record;
mod reply;
mod request;
mod shard;
mod span;
mod state;
mod text;
mod time;
mod wheel;
pub mod wire;

pub use backoff::{Backoff, BackoffError};
pub use clock::{ClockModel, Sample};
pub use command::{
    Ceiling, Command, DeadLetters, Due, Entry, Forward, ForwardError, Kind, Place, Session, Settlement,
};
pub use config::{Config, ConfigError, Pumping, Subscription};
pub use engine::{Engine, Transmit};
pub use event::{Backlogged, Credit, Event, Fault, Held, Ticket, TimeoutReason, Token, Wakeup};
pub use fence::Fence;
pub use identity::{Identity, NotAnIdentity};
pub use job::{Job, NewJob, Take, Verdict};
pub use job_id::{JobId, JobIds};
pub use keyspace::Keyspace;
pub use lease::{Lease, LeaseError};
pub use name::{NameError, Prefix, QueueName};
pub use queue_config::QueueConfig;
pub use reason::Reason;
pub use record::{
    BODY_LIMIT, Compression, Encoded, Head, Metadata, Record, RecordError, Trace, TraceError, armour,
};
pub use reply::{
    CancelOutcome, Counters, ExtendOutcome, Full, Grant, PublishOutcome, Reply, RescheduleOutcome,
    SettleOutcome, Stats, Stored,
};
pub use request::{Answer, Ask, Request, Sizes};
pub use shard::{Shard, Shards};
pub use span::{Span, SpanError};
pub use state::{Phase, State};
pub use time::{Millis, UnixMicros, UnixMs};
pub use wheel::{Key, Wheel};
pub use wire::Refusal;
