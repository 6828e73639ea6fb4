use delayline_core::UnixMs;
use worker::{Env, Request, Response, ScheduledTime, State, Storage, Stub};

use super::config::{Config, ConfigError};
use super::scheduled::pump;
use crate::number::number;
use crate::target::target;
use crate::{Limits, Summary, timer};

/// How long after a run that failed, or was cut off, the next one comes.
const RETRY_MS: u64 = 5_000;
/// A due time so near is waited for, not worth an alarm of its own.
const NEAR_MS: u64 = 1_000;
/// A run takes new jobs for so long, then an alarm of its own goes on with the rest.
const FOR_MS: u64 = 20_000;
/// How long after that the next alarm comes if the run does not live to set it.
const FALLBACK_MS: u64 = 30_000;
/// How often it looks though nobody said that anything is due: jobs that are published elsewhere are not told.
const LOOK_MS: u64 = 600_000;

const ARM: &str = "https://ticker/arm?due=";

/// What the alarm of a Durable Object starts: a run as of [`run_scheduled`](super::run_scheduled), after which the alarm is
/// set for what is due next. However the run ends an alarm is set, before it begins and after it, also if there is no
/// config; one that was [asked for](ask) meanwhile is kept. What went wrong is logged.
///
/// # Errors
/// If the object's storage fails: then the platform calls the alarm again.
pub async fn run_alarm(
    state: &State,
    env: &Env,
    config: Result<Config, ConfigError>,
) -> worker::Result<Response> {
    let storage = state.storage();
    let fallback = timer::wall() + FOR_MS + FALLBACK_MS;
    set(&storage, fallback).await?;
    let wait_ms = match tick(env, config).await {
        Ok(summary) => {
            worker::console_log!("{summary}");
            summary.next_ms.unwrap_or(LOOK_MS).min(LOOK_MS)
        }
        Err(why) => {
            worker::console_error!("{why}");
            RETRY_MS
        }
    };
    let next = timer::wall() + wait_ms;
    match storage.get_alarm().await? {
        Some(asked) if asked != signed(fallback) && asked < signed(next) => {}
        _ => set(&storage, next).await?,
    }
    Response::empty()
}

async fn tick(env: &Env, config: Result<Config, ConfigError>) -> Result<Summary, String> {
    let config = config.map_err(|error| error.to_string())?;
    let limits = Limits { for_ms: FOR_MS, stay_ms: NEAR_MS, ..config.limits.clone() };
    pump(env, &config, limits).await.map_err(|failure| failure.to_string())
}

/// What the object answers to a request: it brings its alarm forward to the due time that [`ask`] sends, or begins to tick.
///
/// # Errors
/// If the object's storage fails.
pub async fn arm(state: &State, request: &Request) -> worker::Result<Response> {
    let url = request.inner().url();
    let asked = target(&url).1.strip_prefix("due=").and_then(|due| due.parse().ok());
    let due = asked.map_or_else(timer::wall, |due| timer::wall().max(UnixMs(due)));
    let storage = state.storage();
    if storage.get_alarm().await?.is_none_or(|alarm| signed(due) < alarm) {
        set(&storage, due).await?;
    }
    Response::empty()
}

/// Tells the object that a job is due then, or that it is to tick.
///
/// # Errors
/// If it cannot be reached.
pub async fn ask(stub: &Stub, due: Option<UnixMs>) -> worker::Result<()> {
    let due = due.unwrap_or_else(timer::wall);
    stub.fetch_with_str(&format!("{ARM}{due}")).await.map(drop)
}

async fn set(storage: &Storage, at: UnixMs) -> worker::Result<()> {
    storage.set_alarm(ScheduledTime::new(js_sys::Date::new(&number(at.0).into()))).await
}

fn signed(at: UnixMs) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}
