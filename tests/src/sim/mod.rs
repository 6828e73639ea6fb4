//! The simulator: engines, a store and the network in one thread on virtual time, everything drawn from one seed, with
//! oracles after every step.
//!
//! After `TigerBeetle`'s VOPR and Turso's plans: a [`Plan`] says what callers ask and what fails; first everything fails
//! (safety), then faults stop and all must settle (liveness). The store is the one in memory, or a real Redis whose
//! clock the simulator holds. `tests/README.md` lists faults and oracles.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod clock;
mod command_line;
mod draw;
mod marks;
mod mistake;
mod model;
mod names;
mod node;
mod plan;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)]
// how long it takes is told, and decides nothing
mod search;
mod shrink;
mod store;
mod story;
mod summary;
mod world;

pub use command_line::{Args, command_line};
pub use delayline_embedded::Bug;
pub use marks::{Marks, PATHS};
pub use mistake::{Mistake, Slip};
pub use model::Violation;
pub use plan::Plan;
pub use search::{Found, Search};
pub use shrink::shrink;
pub use story::Story;
pub use summary::Summary;
pub use world::{Failure, Report};

use delayline_core::Shards;

use crate::RedisStore;

/// What the longest delivery of an edge process takes.
const DELIVERY_MS: u64 = 300;

/// Plays a plan on the store in memory, with a mistake planted if one is named.
///
/// # Errors
/// The first promise that was broken.
pub fn run(plan: &Plan, mistake: Option<Mistake>, story: Option<Story>) -> Result<Report, Box<Failure>> {
    let bug = mistake.and_then(Mistake::of_store);
    let mut memory = store::Memory::new(&names::keys(plan.shards), bug);
    world::World::new(plan, &mut memory, story).with_slip(mistake.and_then(Mistake::of_driver)).play()
}

/// Plays a plan on a real server, which holds nothing else; scripts with a mistake are planted there.
///
/// # Errors
/// The first promise that was broken.
///
/// # Panics
/// If the server is lost.
pub fn run_on(server: RedisStore, plan: &Plan, story: Option<Story>) -> Result<Report, Box<Failure>> {
    let mut server = store::Server::new(server);
    world::World::new(plan, &mut server, story).play()
}

/// The shards of a plan's deployment.
pub fn shards(plan: &Plan) -> Shards {
    names::keys(plan.shards).shards()
}
