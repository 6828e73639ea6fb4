//! Steps of the core, each alone: what a timer costs, a record, a command, a reply, and the engine's part of a job's life.
//! The benches in `benches/` time them; the program `micro` repeats one, so that its instructions can be counted.
#![forbid(unsafe_code)]

mod case;
mod life;
mod load;
mod random;
mod sample;

pub use case::{Case, all};
pub use life::{Life, Script};
pub use load::{Load, Timers};
pub use random::Random;
pub use sample::{Words, commands, granted, published, record};
