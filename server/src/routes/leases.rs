use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use delayline_http::{Problem, Time, Written, items, outcome};
use delayline_tokio::{Error, Lease, Reason, Span, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::options::Said;
use super::path::InPath;
use super::take::{LEASE, LEASES};
use crate::app::{App, Shared};
use crate::body::{Empty, Inbound};
use crate::rejection::{Rejection, problem};

pub(super) async fn ack(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    options.finish()?;
    settle(&app, lease.0, Verdict::Ack).await
}

pub(super) async fn nack(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(mut options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let delay = options.read("delay")?;
    let reason = options.read::<String>("reason")?;
    options.finish()?;
    settle(&app, lease.0, verdict(VerdictName::Nack, delay, reason.as_deref())?).await
}

pub(super) async fn snooze(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(mut options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let delay = options.read("delay")?;
    options.finish()?;
    settle(&app, lease.0, verdict(VerdictName::Snooze, delay, None)?).await
}

pub(super) async fn release(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    options.finish()?;
    settle(&app, lease.0, Verdict::Release).await
}

pub(super) async fn bury(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(mut options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let reason = options.read::<String>("reason")?;
    options.finish()?;
    settle(&app, lease.0, verdict(VerdictName::Bury, None, reason.as_deref())?).await
}

pub(super) async fn extend(
    State(app): State<Shared>,
    InPath(lease): InPath<Lease>,
    Said(mut options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let length = options.in_range("lease", LEASES)?.unwrap_or(LEASE);
    options.finish()?;
    let extended = app.client.extend(lease, Duration::from_millis(length.0)).await?;
    let ends = outcome::extended(extended.outcome, extended.ends)?;
    Ok(Json(json!({ "status": "ok", "lease_ends": Time(ends) })).into_response())
}

async fn settle(app: &App, lease: Lease, verdict: Verdict) -> Result<Response, Rejection> {
    let status = outcome::settled(app.client.settle(lease, verdict).await?)?;
    Ok(Json(json!({ "status": status })).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    lease: Written<Lease>,
    verdict: VerdictName,
    delay: Option<Written<Span>>,
    reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VerdictName {
    Ack,
    Nack,
    Snooze,
    Release,
    Bury,
}

#[derive(Serialize)]
struct Outcome {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

pub(super) async fn settle_many(
    State(app): State<Shared>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let body = body.json().await?;
    let items = items(&body, |error| {
        let detail = format!("the body is not an array of {{\"lease\", \"verdict\"}}: {error}");
        Problem::bad("bad_json", detail)
    })?;
    let (mut read_as, mut leases) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items {
        read_as.push(read(item).map(|settlement| leases.push(settlement)));
    }
    let mut settlements = app.client.settle_all(leases).await.into_iter();
    let results = read_as.into_iter().map(|read| {
        if let Err(problem) = read {
            return Outcome::of(Err(problem));
        }
        let unknown = || Err(Error::Unknown { address: app.client.address().to_owned() });
        let settled = settlements.next().unwrap_or_else(unknown);
        Outcome::of(settled.map_err(problem).and_then(outcome::settled))
    });
    let results: Vec<Outcome> = results.collect();
    Ok(Json(json!({ "results": results })).into_response())
}

impl Outcome {
    fn of(settled: Result<&'static str, Problem>) -> Outcome {
        match settled {
            Ok(status) => Outcome { status, code: None, detail: None },
            Err(problem) => {
                let status = if matches!(problem.code, "stale" | "gone") { problem.code } else { "error" };
                Outcome { status, code: Some(problem.code), detail: Some(problem.detail) }
            }
        }
    }
}

fn read(item: &RawValue) -> Result<(Lease, Verdict), Problem> {
    let item: Item = serde_json::from_str(item.get())
        .map_err(|error| Problem::bad("bad_item", format!("this settles nothing: {error}")))?;
    let verdict = verdict(item.verdict, item.delay.map(|delay| delay.0), item.reason.as_deref())?;
    Ok((item.lease.0, verdict))
}

fn verdict(name: VerdictName, delay: Option<Span>, reason: Option<&str>) -> Result<Verdict, Problem> {
    use VerdictName::{Ack, Bury, Nack, Release, Snooze};
    if delay.is_some() && !matches!(name, Nack | Snooze) {
        return Err(Problem::bad("bad_item", "only nack and snooze have a delay: leave it out"));
    }
    if reason.is_some() && !matches!(name, Nack | Bury) {
        return Err(Problem::bad("bad_item", "only nack and bury have a reason: leave it out"));
    }
    let reason = Reason::new(reason.unwrap_or_default());
    Ok(match name {
        Ack => Verdict::Ack,
        Nack => Verdict::Nack { after_ms: delay.map(|delay| delay.0), reason },
        Snooze => {
            let delay =
                delay.ok_or_else(|| Problem::bad("bad_option", "a snooze needs a delay: add delay=5s"))?;
            Verdict::Snooze { after_ms: delay.0 }
        }
        Release => Verdict::Release,
        Bury => Verdict::Bury { reason },
    })
}
