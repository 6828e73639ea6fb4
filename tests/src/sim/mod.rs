//! The simulator: engines, the embedded store and the network in one thread on virtual time, everything drawn from one
//! seed, with oracles after every step.
//!
//! After `TigerBeetle`'s VOPR: first everything fails at random (safety), then faults stop and all must settle
//! (liveness). Each seed draws which faults exist at all, and how often.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod faults;
mod model;
mod node;
mod workload;
mod world;

pub use faults::{Faults, Switches};
pub use model::Violation;
pub use world::{Failure, Report, run};
