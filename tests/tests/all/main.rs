//! All integration tests, in one binary.
#![allow(missing_docs)]

mod edges;
mod lua_source;
mod rig;
mod scenario;
mod scripts;
