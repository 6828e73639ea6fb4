//! A delayed-job queue on Redis for tokio services.
//!
//! A [`Client`] publishes, takes and administers; a [`Worker`] runs handlers. Both speak to Redis through an engine of
//! their own, which lives on a thread of its own: a handler that blocks its runtime cannot stop renewals. A Redis that
//! restarts needs no action: what was accepted is sent again until it is known to have arrived, or its time is over.
//!
//! ```
//! use std::time::Duration;
//! use delayline_tokio::{Client, Job, Worker};
//!
//! # #[cfg(feature = "memory")]
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let client = Client::connect("memory://").await?; // or "redis://127.0.0.1/"
//! let greetings = client.queue("greetings")?;
//! greetings.publish("hello").delay(Duration::from_millis(20)).await?;
//!
//! let (heard, mut hears) = tokio::sync::mpsc::channel(1);
//! Worker::new(&client)
//!     .queue("greetings", move |job: Job| {
//!         let heard = heard.clone();
//!         async move { heard.send(job.body).await }
//!     })
//!     .run_until(async move { assert_eq!(hears.recv().await.unwrap(), "hello") })
//!     .await?;
//! # Ok::<(), delayline_tokio::Error>(())
//! # }).unwrap();
//! ```
//!
//! Bodies are bytes: how they are written is the application's affair.

mod address;
mod builder;
mod client;
mod clock;
mod cursor;
mod entropy;
mod error;
mod handler;
mod inbox;
mod inspected;
mod invalid;
mod link;
mod listener;
#[cfg(feature = "memory")]
mod memory;
mod owner;
mod publish;
mod queue;
mod store;
mod taking;
mod verdict;
mod when;
mod worker;

pub use address::AddressError;
pub use builder::ClientBuilder;
pub use bytes::Bytes;
pub use client::{Client, Extended};
pub use cursor::{Cursor, Page};
pub use delayline_core::{
    Backoff, BackoffError, CancelOutcome, Ceiling, ConfigError, Counters, ExtendOutcome, Fence, Forward,
    ForwardError, Full, Held, Job, JobId, Lease, LeaseError, NameError, Phase, Place, Prefix, QueueConfig,
    QueueName, Reason, RecordError, Refusal, RescheduleOutcome, SettleOutcome, Shards, Sizes, Span,
    SpanError, State, Stats, Trace, TraceError, UnixMicros, UnixMs, Verdict,
};
pub use error::Error;
pub use inspected::{Contents, Inspected};
pub use invalid::Invalid;
pub use publish::{Publish, Published};
pub use queue::{DeadMoved, Queue, Rescheduled};
pub use redis;
pub use taking::Taking;
pub use verdict::IntoVerdict;
pub use when::When;
pub use worker::{QueueOptions, Worker};
