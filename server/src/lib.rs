//! delayline as a service and a command line: delayed jobs over HTTP and JSON, on Redis or in memory.
//!
//! The binary is [`Cli`] parsed and [`Cli::run`]; [`Server`] is the service for whoever embeds or tests it.
#![forbid(unsafe_code)]

mod app;
mod body;
mod cli;
mod consume;
mod document;
mod draft;
mod exec;
mod failure;
mod item;
mod job;
mod lines;
mod metrics;
mod options;
mod payload;
mod problem;
mod publish;
mod queue;
mod recorder;
mod redis;
mod routes;
mod serve;
mod stats;
mod stop;
mod timestamp;
mod written;

pub use cli::{Cli, Command};
pub use consume::Consume;
pub use failure::Failure;
pub use publish::Publish;
pub use redis::Redis;
pub use serve::{Serve, Server};
pub use stats::Stats;
