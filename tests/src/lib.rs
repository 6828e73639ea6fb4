//! What the tests share: real servers, a store on one of them, the dump of all it holds, and the simulator.
#![forbid(unsafe_code)]

pub mod attack;
pub mod bench;
pub mod chaos;
mod descriptors;
mod dump;
pub mod edge;
mod endpoint;
mod far;
mod flavour;
mod flood;
pub mod fuzz;
mod http;
pub mod http_cost;
mod mark;
mod measure;
mod meter;
mod patch;
mod pipeline;
pub mod plain;
mod poll;
mod process;
mod random;
mod redis_server;
mod redis_store;
mod report;
mod resp;
mod runtime;
mod scratch;
pub mod seeds;
mod service;
pub mod shim;
pub mod sim;
mod sound;
mod wire;

pub use descriptors::raise_descriptors;
pub use dump::{Contents, Dump, dump_words, dumped};
pub use far::Far;
pub use flavour::Flavour;
pub use flood::Flood;
pub use http::{Http, Response};
pub use mark::{Mark, What};
pub use measure::measure;
pub use meter::Meter;
pub use patch::{metered, patched};
pub use pipeline::Pipeline;
pub use poll::until;
pub use process::Process;
pub use random::Random;
pub use redis_server::{Append, Options, RedisServer};
pub use redis_store::{RedisStore, damaging, encoded};
pub use report::report;
pub use resp::{Connection, words};
pub use runtime::block_on;
pub use sound::sound;

/// The README's example, compiled with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

/// The guides' examples, compiled and run with the documentation's tests.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../docs/getting-started.md")]
    mod getting_started {}

    #[doc = include_str!("../../docs/retries-and-dead-letters.md")]
    mod retries_and_dead_letters {}

    #[doc = include_str!("../../docs/delivery-guarantees.md")]
    mod delivery_guarantees {}

    #[doc = include_str!("../../docs/testing.md")]
    mod testing {}

    #[doc = include_str!("../../docs/production.md")]
    mod production {}
}
