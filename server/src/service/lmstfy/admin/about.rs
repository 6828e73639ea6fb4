use std::collections::BTreeMap;

use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::super::answer::{self, Refusal, indented, indented_json, text};
use super::super::query::Query;
use super::super::tokens::POOL;
use super::super::{Lmstfy, Shared};

/// The most queues that are named at once.
const QUEUES: usize = 100_000;
const PAGE: u16 = 1_000;
const UNKNOWN: &str = "unknown";

#[derive(Serialize)]
struct About {
    build_commit: &'static str,
    build_date: &'static str,
    version: &'static str,
}

pub(super) async fn pools() -> Response {
    indented_json(StatusCode::OK, &[POOL])
}

/// The version of this service, which says nothing of when and of what it was built.
pub(super) async fn version() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    indented_json(StatusCode::OK, &About { build_commit: UNKNOWN, build_date: UNKNOWN, version })
}

/// The queues of each namespace. A pool that there is not has nothing to say.
pub(super) async fn info(
    State(lmstfy): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = Query::of(query.as_deref());
    let pool = query.get("pool").unwrap_or_default();
    if !pool.is_empty() && pool != POOL {
        return Ok(StatusCode::OK.into_response());
    }
    let namespaces = namespaces(&lmstfy).await?;
    Ok(text(StatusCode::OK, indented(&namespaces) + "\n"))
}

async fn namespaces(lmstfy: &Lmstfy) -> Result<BTreeMap<String, Vec<String>>, Refusal> {
    let (mut namespaces, mut cursor, mut seen) = (BTreeMap::<String, Vec<String>>::new(), None, 0);
    loop {
        let page = lmstfy.app.client.queues(cursor.as_ref(), PAGE).await?;
        seen += page.items.len();
        for queue in page.items {
            if let Some(namespace) = queue.namespace() {
                let queues = namespaces.entry(namespace.to_string()).or_default();
                queues.push(queue.own().to_owned());
            }
        }
        cursor = page.next;
        if cursor.is_none() || seen >= QUEUES {
            break;
        }
    }
    for queues in namespaces.values_mut() {
        queues.sort_unstable();
        queues.dedup();
    }
    Ok(namespaces)
}

/// This service's metrics, under its own names.
pub(super) async fn metrics(State(lmstfy): State<Shared>) -> Response {
    let text = lmstfy.app.metrics().await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

pub(super) async fn access_log(State(lmstfy): State<Shared>) -> Response {
    let status = if lmstfy.access.is_each() { "enabled" } else { "disabled" };
    answer::json(StatusCode::OK, &json!({ "status": status }))
}

/// Begins or ends the log lines about each request, of all listeners of this process.
pub(super) async fn set_access_log(
    State(lmstfy): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let each = match Query::of(query.as_deref()).get("status") {
        Some("enable") => true,
        Some("disable") => false,
        _ => return Err(Refusal::bad("invalid status")),
    };
    lmstfy.access.set_each(each);
    Ok(access_log(State(lmstfy)).await)
}
