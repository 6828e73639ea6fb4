//! delayline as a service and a command line: delayed jobs over HTTP and JSON, on Redis or in memory.
//!
//! The binary is [`main`]; [`Server`] is the service for whoever embeds or tests it, [`RestServer`] the REST
//! endpoint.
#![forbid(unsafe_code)]

mod cli;
mod failure;
mod service;
mod upstash;

pub use cli::commands::{
    Cancel, Completions, Config, Consume, Dead, Destroy, Doctor, Edit, Import, Job, List, Man, Namespace,
    Pause, Publish, Pump, Push, Queues, Release, Replay, Reschedule, Rest, RestServer, Resume, Serve, Stats,
    Token, Trace,
};
pub use cli::redis::Redis;
pub use cli::{Cli, Command, main};
pub use failure::Failure;
#[doc(hidden)]
pub use service::server::Door;
pub use service::server::Server;
/// What a program that serves allocates with, set up by [`main`]: glibc never gives back the small pieces that many connections
/// have left.
#[cfg(target_os = "linux")]
pub use tikv_jemallocator::Jemalloc as Allocator;
