//! delayline as a service and a command line: delayed jobs over HTTP and JSON, on Redis or in memory.
//!
//! The binary is [`run`]; [`Server`] is the service for whoever embeds or tests it, [`RestServer`] the REST
//! endpoint.
#![forbid(unsafe_code)]

mod app;
mod body;
mod cli;
mod commands;
mod draft;
mod exec;
mod failure;
mod fields;
mod file;
mod help;
mod lines;
mod listener;
mod metrics;
mod print;
mod queue;
mod recorder;
mod recording;
mod redis;
mod rejection;
mod rest;
mod routes;
mod settings;
mod stop;
mod table;

pub use cli::{Cli, Command, run};
pub use commands::{
    Cancel, Completions, Config, Consume, Dead, Destroy, Doctor, Job, List, Man, Pause, Publish, Pump,
    Queues, Replay, Reschedule, Rest, RestServer, Resume, Serve, Server, Stats, Trace,
};
pub use failure::Failure;
pub use redis::Redis;
