use delayline_core::Identity;
use delayline_core::wire::Delivery;
use worker::Env;

use super::config::Config;
use super::deliver::Courier;
use super::opened;
use crate::redis::Live;
use crate::{Failure, Limits, Summary, run};

/// What a cron event starts: takes what is due, delivers it, waits for what is due soon, and leaves in time. See
/// [`run::run`]. An error is to be handed on, so that Cloudflare shows the event as failed.
pub async fn run_scheduled(env: &Env, config: &Config) -> Result<Summary, Failure> {
    pump(env, config, config.limits.clone()).await
}

pub(super) async fn pump(env: &Env, config: &Config, limits: Limits) -> Result<Summary, Failure> {
    let why =
        |error: getrandom::Error| Failure::Unreachable { why: format!("there is no randomness: {error}") };
    let identity = Identity(getrandom::u64().map_err(why)?);
    let salt = getrandom::u64().map_err(why)?;
    let redis = config.redis(Delivery);
    let to = Courier { env, targets: &config.targets, delivery_ms: limits.delivery_ms };
    let world = Live { redis: &redis, to };
    let deployment = config.deployment();
    let engine = config.engine(&limits, salt);
    let summary = run::run(&world, engine, limits, identity, !opened::is_known(&deployment)).await?;
    if summary.trouble.is_none() {
        opened::remember(deployment);
    }
    Ok(summary)
}
