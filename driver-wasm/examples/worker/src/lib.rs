//! A worker that cron starts every minute: it pushes the due jobs of the queue `orders` to a URL, and pumps all others.
//! Its `fetch` is the producer's API: `POST /v1/queues/orders/jobs?delay=5s` publishes.

use delayline_wasm::worker::{Config, ConfigError, run_scheduled, serve};
use wasm_bindgen::prelude::*;
use worker::{Context, Env, Request, Response, console_log, event};

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

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> worker::Result<Response> {
    serve(request, &config(&env).map_err(|error| error.to_string())?).await
}
