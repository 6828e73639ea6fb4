//! A delayed-job queue as pure state machines: no clock, no randomness, no I/O.
//!
//! An [`Engine`] turns clock readings and replies of the store into batches of [`Command`]s and [`Event`]s. A driver
//! carries them out: over TCP, over HTTP, or in memory. This is a whole driver, over the store in memory; a real one
//! differs in that replies take their time, and may be lost:
//!
//! ```
//! use bytes::Bytes;
//! use delayline_core::{
//!     Config, Credit, Due, Engine, Event, Identity, Millis, NewJob, Pumping, Reply, Shards, Subscription, Token,
//!     UnixMicros, Verdict,
//! };
//! use delayline_embedded::Store;
//!
//! let mut store = Store::new(Shards::default());
//! let mut now = Millis(0);
//! let redis_now = |now: Millis| UnixMicros(1_763_700_000_000_000 + now.0 * 1000);
//!
//! let emails = "emails".parse()?;
//! let config = Config {
//!     subscriptions: vec![Subscription { queue: emails, weight: 1, max: 10 }],
//!     slots: 10,
//!     pump: Pumping::Always,
//!     ..Config::default()
//! };
//! let identity = Identity(0x5eed); // 64 random bits in a real driver
//! let mut engine = Engine::new(config, identity, now)?;
//!
//! let mut job = NewJob::new("emails".parse()?, "welcome-17".parse()?, Bytes::from_static(b"{}"));
//! job.due = Due::After { ms: 60_000 };
//! engine.publish(now, Token(1), job).expect("there is room");
//!
//! let mut ran_at = None;
//! while ran_at.is_none() {
//!     // What to do: until both have nothing more.
//!     let mut moved = true;
//!     while moved {
//!         moved = false;
//!         while let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) {
//!             let ticket = transmit.ticket;
//!             let replies: Vec<Reply> =
//!                 transmit.commands.iter().map(|command| store.execute(redis_now(now), command)).collect();
//!             engine.handle_replies(now, ticket, replies);
//!             moved = true;
//!         }
//!         while let Some(event) = engine.poll_event() {
//!             if let Event::Run(job) = event {
//!                 ran_at = Some(now);
//!                 engine.settle(now, job.held.expect("a managed job"), Verdict::Ack);
//!             }
//!             moved = true;
//!         }
//!     }
//!     // Then sleep; here, time simply passes.
//!     if let Some((at, _reason)) = engine.poll_timeout() {
//!         now = at;
//!         engine.handle_timeout(now);
//!     }
//! }
//! let late_ms = ran_at.map(|at| at.0 - 60_000);
//! assert!(late_ms.is_some_and(|ms| ms < 50), "ran {late_ms:?} ms after it was due");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where to look: `engine` composes a machine a noun (publisher, settler, consumer, takes, pump, requests) over `flight`,
//! which knows round trips, resends and timers. [`wire`] is the one place that writes commands and reads replies.
//! [`story`] tells all of it in words; [`recording`] keeps what an engine is told, and steps it through that again.
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
mod edit;
mod engine;
mod event;
mod fence;
mod identity;
mod inspected;
mod invalid;
mod job;
mod job_id;
mod keyspace;
mod lease;
mod name;
mod published;
mod queue_config;
mod reason;
mod record;
pub mod recording;
mod reply;
mod request;
mod shard;
mod span;
mod state;
pub mod story;
mod text;
mod time;
mod wheel;
pub mod wire;

pub use backoff::{Backoff, BackoffError};
pub use clock::{ClockModel, Sample};
pub use command::{
    Ceiling, Command, DeadLetters, Due, Entry, Forward, ForwardError, Kind, Place, Session, Settlement,
};
pub use config::{Config, ConfigError, Pacing, Pumping, Subscription};
pub use edit::{Change, Edit, JobEdit, NotEditable, RecordDigest};
pub use engine::{Engine, Transmit};
pub use event::{Backlogged, Credit, Event, Fault, Held, Ticket, TimeoutReason, Token, Wakeup};
pub use fence::Fence;
pub use identity::{Identity, NotAnIdentity};
pub use inspected::{Contents, Inspected};
pub use invalid::Invalid;
pub use job::{ATTEMPTS, DELAY_MAX_MS, Job, NewJob, Take, TooLarge, Verdict, VerdictKind};
pub use job_id::{JobId, JobIds};
pub use keyspace::Keyspace;
pub use lease::{Lease, LeaseError};
pub use name::{NameError, Namespace, Prefix, QueueName};
pub use published::Published;
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
