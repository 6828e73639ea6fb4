//! A worker whose Durable Object has its alarm at the time of the next due job: punctual, and idle until then. Its `fetch`
//! is the producer's API, which brings the alarm forward; a sparse cron sees to it that it ticks at all.

use delayline_wasm::worker::{self as delayline, Config, ConfigError, serve_and_ask};
use wasm_bindgen::prelude::*;
use worker::{Context, DurableObject, Env, Request, Response, State, Stub, durable_object, event};

fn config(env: &Env) -> Result<Config, ConfigError> {
    Config::from_env(env)?.push("orders", &delayline::var(env, "PUSH_URL")?)
}

fn ticker(env: &Env) -> worker::Result<Stub> {
    env.durable_object("TICKER")?.get_by_name("ticker")
}

#[durable_object]
pub struct Ticker {
    state: State,
    env: Env,
}

impl DurableObject for Ticker {
    fn new(state: State, env: Env) -> Ticker {
        Ticker { state, env }
    }

    async fn fetch(&self, request: Request) -> worker::Result<Response> {
        delayline::arm(&self.state, &request).await
    }

    async fn alarm(&self) -> worker::Result<Response> {
        delayline::run_alarm(&self.state, &self.env, config(&self.env)).await
    }
}

#[wasm_bindgen]
pub async fn scheduled(_event: JsValue, env: Env, _context: JsValue) -> Result<(), JsError> {
    Ok(delayline::ask(&ticker(&env)?, None).await?)
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> worker::Result<Response> {
    let config = config(&env).map_err(|error| error.to_string())?;
    serve_and_ask(request, &config, &ticker(&env)?).await
}
