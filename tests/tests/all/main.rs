//! All integration tests, in one binary.
#![allow(missing_docs)]

mod conformance;
mod coverage;
mod edges;
mod invariants;
mod lua_source;
mod rig;
mod scenario;
mod scripts;
mod simulation;
mod twin;
mod world;
