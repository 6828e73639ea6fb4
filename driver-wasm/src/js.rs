//! The classes of the npm package: a queue over any endpoint of Upstash's REST API, and the engine alone.

mod answer;
mod deployment;
mod engine;
mod error;
mod event;
mod handler;
mod job;
mod object;
mod options;
mod payload;
mod publish;
mod pump;
mod queue;
mod stats;
mod take;
mod transmit;
mod value;
mod verdict;

pub use engine::Engine;
pub use error::Thrown;
pub use queue::DelayQueue;
