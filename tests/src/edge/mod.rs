//! Workers as Cloudflare runs them: built by the bundler, run by workerd, between a REST endpoint before a real Redis and
//! a receiver of what they push.

mod need;
mod outcome;
mod receiver;
mod rest;
mod setup;
mod worker;
mod workerd;

pub use need::{built, missing, workerd};
pub use outcome::Outcome;
pub use receiver::{Answer, Push, Receiver};
pub use rest::{Fault, Rest};
pub use setup::Setup;
pub use worker::Worker;
pub use workerd::Workerd;
