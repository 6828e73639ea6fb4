//! A worker that cron starts every minute: it pushes the due jobs of the queue `orders` to a URL, and tends all others.

use delayline_wasm::worker::{Config, ConfigError, run_scheduled};
use wasm_bindgen::prelude::*;
use worker::{Env, console_log};

fn config(env: &Env) -> Result<Config, ConfigError> {
    let url = env.var("PUSH_URL").map_err(|_| ConfigError::Missing("PUSH_URL"))?.to_string();
    Config::from_env(env)?.push("orders", &url)
}

/// An error is shown by Cloudflare as a failed event.
#[wasm_bindgen]
pub async fn scheduled(_event: JsValue, env: Env, _context: JsValue) -> Result<(), JsError> {
    console_log!("{}", run_scheduled(&env, &config(&env)?).await?);
    Ok(())
}
