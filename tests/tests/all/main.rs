//! The integration tests that may run side by side, in one program.
#![allow(missing_docs)]

mod acl;
mod bench;
mod broken;
mod clock;
mod conformance;
mod coverage;
mod demotion;
mod edges;
mod enumeration;
mod fuzz;
mod held;
mod invariants;
mod layout;
mod letter;
mod link;
mod lua_source;
mod mirror;
mod outage;
mod plain;
mod planted;
mod readme;
mod replace;
mod rest;
mod rig;
mod runner;
mod scenario;
mod scene;
mod scripts;
mod simulation;
mod twin;
mod user;
mod world;
