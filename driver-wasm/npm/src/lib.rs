//! Builds the npm package: the classes of `delayline-wasm`, an entry for each place that runs JavaScript, types.
//!
//! `cargo run --release -p delayline-npm` writes it to `driver-wasm/npm/pkg`, for `npm pack` and `npm publish`.
#![forbid(unsafe_code)]

mod failure;
mod package;

pub use failure::Failure;
pub use package::{Package, package};
