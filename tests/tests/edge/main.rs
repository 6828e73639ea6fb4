//! Workers in workerd, Cloudflare's runtime: what they do when it starts them, and when all around them fails.
#![allow(missing_docs)]

mod cron;
mod delivery;
mod fixture;
mod harness;
mod site;
mod size;
mod ticker;
