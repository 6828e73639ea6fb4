//! The delayline queue's store in memory: what the Lua scripts do in Redis, done to maps, with the same answers and the
//! same keys.
//!
//! A file each for the nouns (a store, its shards, a queue's keys, its meta, its sessions) and for what the scripts share
//! (changes, the agenda, reaping, sifting), then one for each script or group of scripts: `lua/` beside `src/` reads the
//! same. The order of everything is Redis's, by score, then by member. Time enters only through [`Store::execute`].
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod agenda;
mod bug;
mod changes;
mod config;
mod damage;
mod dead;
mod destination;
mod dump;
mod extend;
mod forward;
mod meta;
mod notices;
mod pool;
mod publish;
mod queue;
mod reads;
mod reap;
mod reserve;
mod script;
mod session;
mod settle;
mod shard;
mod sift;
mod store;
mod tend;
mod waiting;
mod zset;

pub use bug::Bug;
pub use damage::{Damage, Key};
pub use dump::Dumped;
pub use notices::Notice;
pub use store::Store;

#[cfg(test)]
mod tests;
