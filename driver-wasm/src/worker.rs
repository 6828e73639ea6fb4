//! Inside a Cloudflare worker: a cron that pumps and delivers, a producer API, a Durable Object's alarm.

mod config;
mod deliver;
mod hand_over;
mod handler;
mod opened;
mod push;
mod scheduled;
mod serve;
mod ticker;
mod verdict;

pub use config::{Config, ConfigError, var};
pub use scheduled::run_scheduled;
pub use serve::{serve, serve_and_ask};
pub use ticker::{arm, ask, run_alarm};
pub use verdict::IntoVerdict;
