//! What an engine decides, seen from its driver: what it sends, when, and what it makes of the answers.

mod grant;
mod grants;
mod pacing;
mod pump_lease;
mod turns;
