//! A delayed-job queue as pure state machines.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;
mod clock;
mod identity;
mod job_id;
mod name;
mod record;
mod span;
mod text;
mod time;
mod wheel;

pub use backoff::{Backoff, BackoffError};
pub use clock::{ClockModel, Sample};
pub use identity::Identity;
pub use job_id::{JobId, JobIds};
pub use name::{NameError, Prefix, QueueName};
pub use record::{
    BODY_LIMIT, Compression, Encoded, Head, Metadata, Record, RecordError, Trace, TraceError, armour,
};
pub use span::{Span, SpanError};
pub use time::{Millis, UnixMicros, UnixMs};
pub use wheel::{Key, Wheel};
