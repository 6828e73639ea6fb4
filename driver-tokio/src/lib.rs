//! A delayed-job queue on Redis for tokio services.
//!
//! A [`Client`] publishes, takes and administers; a [`Worker`] runs handlers. Both speak to Redis through an engine of
//! their own, which lives on a thread of its own: a handler that blocks its runtime cannot stop renewals. A Redis that
//! restarts needs no action: what was accepted is sent again until it is known to have arrived, or its time is over.
//!
//! ```
//! use std::time::Duration;
//! use delayline_tokio::{Attempt, Client, Failure, Job, Worker};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Welcome {
//!     to: String,
//! }
//!
//! async fn send(Job(mail): Job<Welcome>, Attempt(attempt): Attempt) -> Result<(), Failure> {
//!     if !mail.to.contains('@') {
//!         return Err(Failure::bury("not an address"));
//!     }
//!     println!("to {}, attempt {attempt}", mail.to);
//!     Ok(()) // done; any error means: again, by the queue's backoff
//! }
//!
//! # #[cfg(feature = "memory")]
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let client = Client::connect("memory://").await?; // or "redis://127.0.0.1/"
//! let welcome = client.queue::<Welcome>("welcome")?;
//! welcome.publish(&Welcome { to: "ann@example.org".into() }).delay(Duration::from_millis(20)).await?;
//!
//! let worker = Worker::new(&client).concurrency(50).queue(&welcome, send);
//! worker.run_until(tokio::time::sleep(Duration::from_millis(100))).await?; // or tokio::signal::ctrl_c()
//! # Ok::<(), delayline_tokio::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Tests
//!
//! [`test()`] gives the same client on a store in memory, and holds the time: [`TestClock::advance`] runs the same workers
//! and handlers through thirty days at once.
//!
//! # Features
//!
//! | Feature | Default | What it adds |
//! |---|---|---|
//! | `memory` | yes | `memory://` URLs, and [`test()`]: a store in this process |
//! | `tls` | no | `rediss://` URLs: rustls with the operating system's certificates |
//!
//! # Log lines and spans
//!
//! By [`tracing`](https://docs.rs/tracing): a span `publish` (queue, id) and `take` (queues, count) at debug level, and
//! `handle` (queue, id, attempt, trace) at info level around each handler. Failed attempts, lost leases and a Redis that
//! is away are warnings.
//!
//! # Metrics
//!
//! By the [`metrics`](https://docs.rs/metrics) facade; install a recorder before a client connects. They tell of this
//! process; what the queues hold, and what all processes did, is told by [`Queue::stats`].
//!
//! | Name | Kind, labels | What |
//! |---|---|---|
//! | `delayline_published_total` | counter, `queue`, `namespace` | jobs accepted from this process |
//! | `delayline_delivered_total` | counter, `queue`, `namespace` | deliveries to this process |
//! | `delayline_acked_total` | counter, `queue`, `namespace` | jobs it has acknowledged |
//! | `delayline_nacked_total` | counter, `queue`, `namespace` | attempts that failed in it |
//! | `delayline_snoozed_total` | counter, `queue`, `namespace` | deliveries it has put off |
//! | `delayline_dead_total` | counter, `queue`, `namespace` | jobs that died of its verdict |
//! | `delayline_expired_total` | counter, `queue`, `namespace` | jobs whose TTL it found ended when it tended their queue |
//! | `delayline_leases_ended_total` | counter, `queue`, `namespace` | leases, of whomever, that it found ended without a verdict when it tended their queue |
//! | `delayline_leases_lost_total` | counter, `queue`, `namespace` | leases that it lost while a handler ran |
//! | `delayline_lateness_seconds` | histogram, `queue`, `namespace` | from a job's due time to its delivery |
//! | `delayline_run_seconds` | histogram, `queue`, `namespace` | how long handlers ran, those that lost their lease too |
//! | `delayline_attempts` | histogram, `queue`, `namespace` | the attempt at which jobs of its workers were done, or died |
//! | `delayline_round_trips_total` | counter, `outcome` (`answered`, `lost`) | round trips to Redis |
//! | `delayline_reconnects_total` | counter, `connection` (`commands`, `wakeups`) | connections made again |
//!
//! A take that comes upon ended leases or expired jobs deals with them unseen: all of them are in [`Queue::stats`].

mod address;
mod builder;
mod client;
mod clock;
mod codec;
mod contact;
mod context;
mod cursor;
mod edited;
mod entropy;
mod error;
mod extract;
mod failure;
mod handler;
#[cfg_attr(not(feature = "memory"), allow(dead_code))]
mod held;
mod inbox;
mod invalid;
#[cfg(feature = "memory")]
pub mod kit;
mod link;
mod listener;
#[cfg(feature = "memory")]
mod memory;
mod meters;
mod owner;
mod publish;
mod queue;
mod recorder;
mod runner;
mod service;
mod site;
mod store;
mod taking;
#[cfg(target_os = "linux")]
mod timer;
mod verdict;
mod when;
mod worker;

pub use address::{AddressError, tuned};
pub use builder::ClientBuilder;
pub use bytes::Bytes;
pub use client::{Client, Extended};
pub use codec::{BoxError, Codec, Json, Raw};
pub use context::Context;
pub use cursor::{Cursor, Page};
#[doc(inline)]
pub use delayline_core::Job as Delivery;
pub use delayline_core::recording::{Damaged, Divergence, Replay, Step, Unreadable};
pub use delayline_core::story::{About, Line};
pub use delayline_core::{
    Backoff, BackoffError, CancelOutcome, Ceiling, Change, ConfigError, Contents, Counters, Due,
    ExtendOutcome, Fence, Forward, ForwardError, Full, Held, Inspected, Invalid, JobEdit, JobId, Lease,
    LeaseError, NameError, Namespace, NotEditable, Pacing, Phase, Place, Prefix, Published, QueueConfig,
    QueueName, Reason, RecordError, Refusal, RescheduleOutcome, SettleOutcome, Shards, Sizes, Span,
    SpanError, State, Stats, Trace, TraceError, UnixMicros, UnixMs, Verdict, VerdictKind,
};
pub use edited::Edited;
pub use error::Error;
pub use extract::{Attempt, Data, FromContext, Headers, Job};
pub use failure::Failure;
pub use handler::{Blocking, Handler, blocking};
#[cfg(feature = "memory")]
pub use kit::{TestClock, test, test_at};
#[doc(hidden)] // all that Redis sends passes it: it is fuzzed
pub use link::plain;
pub use publish::Publish;
pub use queue::{DeadMoved, Queue, Rescheduled};
pub use recorder::FlightRecorder;
pub use redis;
pub use service::JobService;
pub use taking::Taking;
pub use tokio_util::sync::CancellationToken;
pub use verdict::IntoVerdict;
pub use when::When;
pub use worker::{LostLease, QueueOptions, Worker};
