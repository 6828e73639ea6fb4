//! Tests that time or count what they see, or run whole processes: in a program of their own, since cargo runs one at a
//! time, and one after the other in it.
#![allow(missing_docs)]

mod attack;
mod audit;
mod bodies;
mod chaos;
mod cost;
mod deployment;
mod edge_cost;
mod ending;
mod footprint;
mod idle;
mod latency;
mod lateness;
mod life;
mod memory;
mod plan;
#[cfg(target_os = "linux")]
mod push;
mod quiet;
mod sessions;
mod waits;
