//! All integration tests, in one binary.
#![allow(missing_docs)]

mod acl;
mod audit;
mod chaos;
mod conformance;
mod cost;
mod coverage;
mod deployment;
mod edges;
mod footprint;
mod held;
mod idle;
mod invariants;
mod lateness;
mod life;
mod lua_source;
mod memory;
mod outage;
mod plan;
mod quiet;
mod readme;
mod replace;
mod rig;
mod scenario;
mod scripts;
mod simulation;
mod twin;
mod user;
mod world;
