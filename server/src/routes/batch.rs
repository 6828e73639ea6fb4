use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use delayline_http::body::{JSON_ITEMS, too_many_items};
use delayline_http::item::{self, Outcome};
use delayline_http::{Problem, essence, is_json, is_unstated};
use delayline_tokio::{Error, QueueName};
use futures_util::TryStreamExt;
use serde::Serialize;
use serde_json::value::RawValue;

use super::options::Said;
use super::path::InPath;
use crate::app::{App, Shared};
use crate::body;
use crate::lines::{Line, lines};
use crate::rejection::{Rejection, problem};

const NDJSON: &str = "application/x-ndjson";
/// How many jobs of a batch are on their way at once.
const UNDER_WAY: usize = 64;

#[derive(Serialize)]
struct Results {
    results: Vec<Outcome>,
}

pub(super) async fn publish(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Rejection> {
    options.finish()?;
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(essence);
    match content_type.as_deref() {
        Some(NDJSON | "application/ndjson" | "application/jsonl") => Ok(streamed(&app, queue, body)),
        None => array(&app, &queue, body).await,
        Some(essence) if is_json(essence) || is_unstated(essence) => array(&app, &queue, body).await,
        Some(other) => {
            let detail =
                format!("{other} is no batch: send a JSON array as application/json, or lines as {NDJSON}");
            Err(Problem::new(415, "bad_content_type", detail).into())
        }
    }
}

async fn array(app: &App, queue: &QueueName, body: Body) -> Result<Response, Rejection> {
    let body = body::json(body).await?;
    let items: Vec<&RawValue> = serde_json::from_slice(&body).map_err(|error| {
        let detail = format!("the body is not a JSON array of jobs: {error}; send lines as {NDJSON}");
        Problem::bad("bad_json", detail)
    })?;
    if items.len() > JSON_ITEMS {
        return Err(too_many_items(items.len()).into());
    }
    let (mut read, mut drafts) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items {
        read.push(item::read(item.get().as_bytes()).map(|draft| {
            let id = draft.id.clone();
            drafts.push(draft);
            id
        }));
    }
    let mut published = app.publish_all(queue, drafts).await?.into_iter();
    let results = read.into_iter().map(|read| match read {
        Ok(id) => {
            let unknown = || Err(problem(Error::Unknown { address: app.client.address().to_owned() }));
            Outcome::of(id.as_ref(), published.next().unwrap_or_else(unknown))
        }
        Err(problem) => Outcome::error(None, problem),
    });
    Ok(Json(Results { results: results.collect() }).into_response())
}

/// Answers a line for each line as it is published. What the client does not read stays unsent, and then no more is read
/// from it.
fn streamed(app: &Shared, queue: QueueName, body: Body) -> Response {
    let limit = app.max_payload.bytes.saturating_mul(2).saturating_add(1 << 16);
    let app = Arc::clone(app);
    let outcomes = lines(body.into_data_stream(), limit)
        .map_ok(move |line| {
            let (app, queue) = (Arc::clone(&app), queue.clone());
            async move {
                Ok(match line {
                    Line::Whole(json) => publish_one(&app, &queue, &json).await,
                    Line::TooLong => {
                        let detail = format!(
                            "the line is over {limit} bytes, so it was not read: send a smaller payload"
                        );
                        Outcome::error(None, Problem::too_large("payload_too_large", detail))
                    }
                })
            }
        })
        .try_buffered(UNDER_WAY)
        .map_ok(|outcome| line(&outcome));
    ([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(outcomes)).into_response()
}

fn line(outcome: &Outcome) -> Bytes {
    let mut line = serde_json::to_vec(outcome).unwrap_or_default();
    line.push(b'\n');
    line.into()
}

async fn publish_one(app: &App, queue: &QueueName, json: &[u8]) -> Outcome {
    let draft = match item::read(json) {
        Ok(draft) => draft,
        Err(problem) => return Outcome::error(None, problem),
    };
    let id = draft.id.clone();
    Outcome::of(id.as_ref(), app.publish(queue, draft).await)
}
