//! A worker for the tests of deliveries: a queue for each place where jobs can go, and a request that panics.

use delayline_core::{Job, Reason, Verdict};
use delayline_wasm::worker::{Config, ConfigError, run_scheduled, serve};
use wasm_bindgen::prelude::*;
use worker::{Context, Env, MessageBatch, MessageExt, Request, Response, Result, console_log, event};

fn config(env: &Env) -> std::result::Result<Config, ConfigError> {
    let url = env.var("PUSH_URL").map_err(|_| ConfigError::Missing("PUSH_URL"))?.to_string();
    Config::from_env(env)?
        .push("orders", &format!("{url}/orders"))?
        .hand_over("notes", "NOTES")?
        .handle("sums", 0, |job: Job| async move { sum(&job) })
}

/// Adds numbers with a plus between them. `snooze` comes again in an hour.
fn sum(job: &Job) -> std::result::Result<Verdict, String> {
    let text = str::from_utf8(&job.body).map_err(|error| error.to_string())?;
    if text == "snooze" {
        return Ok(Verdict::Snooze { after_ms: 3_600_000 });
    }
    if text == "bury" {
        return Ok(Verdict::Bury { reason: Reason::new("not a sum") });
    }
    let numbers = text.split('+').map(str::parse::<u64>);
    let sum: u64 = numbers.sum::<std::result::Result<_, _>>().map_err(|error| format!("{text}: {error}"))?;
    console_log!("{text}={sum}");
    Ok(Verdict::Ack)
}

#[wasm_bindgen]
pub async fn scheduled(_: JsValue, env: Env, _: JsValue) -> std::result::Result<(), JsError> {
    console_log!("{}", run_scheduled(&env, &config(&env)?).await?);
    Ok(())
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, _: Context) -> Result<Response> {
    assert!(request.path() != "/panic", "this was asked for");
    serve(request, &config(&env).map_err(|error| error.to_string())?).await
}

/// Pushes what was handed over.
#[event(queue)]
async fn queue(batch: MessageBatch<JsValue>, env: Env, _: Context) -> Result<()> {
    let url = format!("{}/notes", env.var("PUSH_URL")?);
    for message in batch.raw_iter() {
        let text = js_sys::JSON::stringify(&message.body())?;
        let mut init = worker::RequestInit::new();
        init.with_method(worker::Method::Post).with_body(Some(text.into()));
        worker::Fetch::Request(worker::Request::new_with_init(&url, &init)?).send().await?;
    }
    Ok(())
}
