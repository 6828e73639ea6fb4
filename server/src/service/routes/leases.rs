use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use delayline_http::settlement::{self, Settle, SettleMany};
use delayline_http::{Options, outcome};
use delayline_tokio::{Lease, VerdictKind};

use super::options::Said;
use super::path::InPath;
use super::take::{LEASE, LEASES};
use crate::service::app::Shared;
use crate::service::body::{Empty, Inbound};
use crate::service::rejection::{Rejection, problem, respond};
use crate::service::tokens::Caller;

pub(super) async fn ack(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    settle(app, lease, options, body, VerdictKind::Ack).await
}

pub(super) async fn nack(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    settle(app, lease, options, body, VerdictKind::Nack).await
}

pub(super) async fn snooze(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    settle(app, lease, options, body, VerdictKind::Snooze).await
}

pub(super) async fn release(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    settle(app, lease, options, body, VerdictKind::Release).await
}

pub(super) async fn bury(
    app: State<Shared>,
    lease: InPath<Lease>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    settle(app, lease, options, body, VerdictKind::Bury).await
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
    Ok(respond(settlement::extended(ends)))
}

async fn settle(
    State(app): State<Shared>,
    InPath(lease): InPath<Lease>,
    options: Options,
    body: Inbound,
    kind: VerdictKind,
) -> Result<Response, Rejection> {
    let settle = Settle::read(kind, options)?;
    let body = if settle.has_body() { body.document().await? } else { body.none().await? };
    let outcome = app.client.settle(lease, settle.with_body(&body)?).await?;
    Ok(respond(settlement::settled(outcome)?))
}

pub(super) async fn settle_many(
    State(app): State<Shared>,
    caller: Caller,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let reaches = |lease: &Lease| caller.must_reach(&lease.queue);
    let (many, leases) = SettleMany::read(&body.json().await?, reaches)?;
    let settled = app.client.settle_all(leases).await.into_iter();
    Ok(respond(many.answer(settled.map(|settled| settled.map_err(problem)))))
}
