//! Workers in workerd, Cloudflare's runtime: what they do when it starts them, and when all around them fails.
#![allow(missing_docs)]

mod cron;
mod delivery;
mod fixture;
mod harness;
#[cfg(target_os = "linux")]
mod idle;
mod quiet;
mod site;
mod size;
mod ticker;
