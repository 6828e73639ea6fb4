//! Builds a Rust worker into the modules that Cloudflare runs, without any other tool than cargo.
//!
//! [`bundle`] does all of it: cargo builds the crate, wasm-bindgen, which is linked in, writes the glue between it and
//! JavaScript, and an entry is written that starts the worker afresh after a panic. [`compile`] and [`bind`] are its
//! steps, for those who make packages for other places than Cloudflare.
#![forbid(unsafe_code)]

mod bind;
mod bundle;
mod compile;
mod entry;
mod exports;
mod failure;
mod prune;
mod size;

pub use bind::{Target, VERSION, bind};
pub use bundle::{Bundle, Kind, Module, bundle};
pub use compile::{Options, compile};
pub use exports::Exports;
pub use failure::Failure;
pub use size::Size;
