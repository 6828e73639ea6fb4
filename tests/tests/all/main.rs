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
mod enumeration;
mod footprint;
mod fuzz;
mod held;
mod idle;
mod invariants;
mod lateness;
mod letter;
mod life;
mod link;
mod lua_source;
mod memory;
mod mirror;
mod outage;
mod plan;
mod planted;
mod quiet;
mod readme;
mod replace;
mod rig;
mod scenario;
mod scene;
mod scripts;
mod simulation;
mod twin;
mod user;
mod world;
