//! What delayline's HTTP API and its HTTP pushes say, without a server: no I/O, no clock.
//!
//! Whoever serves the API reads a request into what it asks, has the queue do it, and hands back what that is answered;
//! only the reading of bytes and the asking of the queue are its own. The service does so behind axum's router; a driver
//! without one uses [`Call`], which reads the calls that a job's publisher makes.
//!
//! Whoever delivers jobs by HTTP makes a request of each by [`push`], sends it, and settles the job by the verdict on its
//! answer.
#![forbid(unsafe_code)]

mod batch;
mod bearer_token;
pub mod body;
mod call;
mod changes;
mod cloud_event;
pub mod dead;
mod document;
mod draft;
mod edit;
mod etag;
mod headers;
pub mod item;
mod items;
mod job;
mod jobs;
mod object;
#[cfg(feature = "openapi")]
pub mod openapi;
mod options;
pub mod outcome;
mod payload;
mod problem;
mod publish;
pub mod push;
mod question;
mod queue;
mod readable;
mod release;
mod response;
mod route;
mod segment;
pub mod settlement;
mod timestamp;
mod trace;
mod written;

pub use batch::{Batch, Form, NDJSON};
pub use bearer_token::BearerToken;
pub use call::{Asked, Call};
pub use changes::{CancelMany, RescheduleMany};
pub use document::Document;
pub use draft::{Draft, Terms, published, unpublished};
pub use edit::{Edit, Patch};
pub use etag::if_match;
pub use headers::Headers;
pub use items::items;
pub use job::{Delivered, JobPage, JobState, Kept, Taken, joined, state};
pub use jobs::{Cancel, Inspect, Reschedule};
pub use object::Object;
pub use options::Options;
pub use payload::{essence, is_json, is_unstated};
pub use problem::Problem;
pub use publish::Publish;
pub use question::{Question, inspected};
pub use queue::{Names, Queue, Show, ShowConfig, Sizes, configured, destroyed, no_such_queue, paused};
pub use release::ForceRelease;
pub use response::Response;
pub use route::{Operation, ROUTES, Route, Scope};
pub use segment::{Segment, named};
pub use timestamp::{Time, TimeError};
pub use trace::trace;
pub use written::Written;
