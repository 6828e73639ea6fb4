//! A delayed-job queue on Redis from the edge, over Upstash's REST API.
//!
//! The same engine as everywhere else, driven where nothing lives long: a Cloudflare worker that cron starts (module
//! `worker`), or any JavaScript program (the npm package). What does not touch the world is here for every target:
//! [`rest`] writes requests and reads answers, [`run`] is the whole life of a process that cron starts, [`calls`] asks one
//! thing and waits for its answer. They speak to a [`World`], which tests replace.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod air;
pub mod calls;
mod failure;
#[cfg(target_arch = "wasm32")]
mod fetch;
mod limits;
#[cfg(target_arch = "wasm32")]
mod number;
#[cfg(target_arch = "wasm32")]
mod redis;
pub mod rest;
pub mod run;
mod summary;
#[cfg(any(test, all(target_arch = "wasm32", feature = "worker")))]
mod target;
#[cfg(target_arch = "wasm32")]
mod timer;
#[cfg(all(target_arch = "wasm32", feature = "worker"))]
pub mod worker;
mod world;

pub use failure::Failure;
pub use limits::Limits;
pub use summary::{Ended, Summary};
pub use world::World;
