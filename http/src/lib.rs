//! What delayline's HTTP API and its HTTP pushes say, without a server: no I/O, no clock.
//!
//! Whoever serves the API reads a request into what it asks, has the queue do it, and hands back what that is answered;
//! only the reading of bytes and the asking of the queue are its own. The service does so behind axum's router; a driver
//! without one uses [`Call`], which reads the calls that a job's publisher makes.
//!
//! Whoever delivers jobs by HTTP makes a request of each by [`push`], sends it, and settles the job by the verdict on its
//! answer.
#![forbid(unsafe_code)]

pub mod body;
mod document;
mod draft;
mod headers;
pub mod item;
mod job;
mod options;
mod payload;
mod problem;
pub mod push;
mod queue;
mod response;
mod segment;
mod timestamp;
mod token;
mod written;

pub use document::Document;
pub use draft::{Draft, Terms, due, published, unpublished};
pub use headers::Headers;
pub use job::{Kept, Taken, joined, state};
pub use options::Options;
pub use payload::{Encoding, Payload, essence, is_json, is_unstated};
pub use problem::Problem;
pub use queue::{Queue, Sizes};
pub use response::Response;
pub use segment::{Segment, named};
pub use timestamp::{Time, TimeError};
pub use token::Token;
pub use written::Written;
