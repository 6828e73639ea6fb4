//! delayline as a service and a command line: delayed jobs over HTTP and JSON, on Redis or in memory.
//!
//! The binary is [`main`]; [`Server`] is the service for whoever embeds or tests it, [`RestServer`] the REST
//! endpoint.
#![forbid(unsafe_code)]

mod access;
#[cfg(target_os = "linux")]
mod allocator;
mod app;
mod body;
mod cli;
mod commands;
mod draft;
mod exec;
mod failure;
mod fields;
mod file;
mod forwarding;
mod help;
mod limits;
mod lines;
mod listener;
mod log;
mod metrics;
mod nearest;
mod peers;
mod print;
mod printer;
mod queue;
mod recorder;
mod recording;
mod redis;
mod rejection;
mod rest;
mod routes;
mod seldom;
mod settings;
mod site;
mod spool;
mod stop;
mod table;
mod variables;

pub use cli::{Cli, Command, main};
pub use commands::{
    Cancel, Completions, Config, Consume, Dead, Destroy, Doctor, Job, List, Man, Pause, Publish, Pump,
    Queues, Replay, Reschedule, Rest, RestServer, Resume, Serve, Server, Stats, Trace,
};
pub use failure::Failure;
pub use redis::Redis;
/// What a program that serves allocates with, set up by [`main`]: glibc never gives back the small pieces that many connections
/// have left.
#[cfg(target_os = "linux")]
pub use tikv_jemallocator::Jemalloc as Allocator;
