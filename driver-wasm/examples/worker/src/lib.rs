//! A worker that cron starts every minute: it pushes the due jobs of the queue `orders` to a URL, and tends all others.

use delayline_wasm::worker::{Config, ConfigError, run_scheduled, var};
use wasm_bindgen::prelude::*;
use worker::{Env, console_log};

fn config(env: &Env) -> Result<Config, ConfigError> {
    Config::from_env(env)?.push("orders", &var(env, "PUSH_URL")?)
}

/// An error is shown by Cloudflare as a failed event.
#[wasm_bindgen]
pub async fn scheduled(_event: JsValue, env: Env, _context: JsValue) -> Result<(), JsError> {
    console_log!("{}", run_scheduled(&env, &config(&env)?).await?);
    Ok(())
}
