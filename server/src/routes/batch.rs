use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use delayline_http::item::{self, Outcome};
use delayline_http::{Batch, Form, NDJSON, Problem};
use delayline_tokio::QueueName;
use futures_util::TryStreamExt;

use super::options::{Said, headers_of};
use super::path::InPath;
use crate::app::{App, Shared};
use crate::body;
use crate::lines::{Line, lines};
use crate::rejection::{Rejection, respond};

/// How many jobs of a batch are on their way at once.
const UNDER_WAY: usize = 64;

pub(super) async fn publish(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Rejection> {
    options.finish()?;
    match Form::of(&headers_of(&headers))? {
        Form::Lines => Ok(streamed(&app, queue, body)),
        Form::Array => {
            let (batch, drafts) = Batch::read(&body::json(body).await?)?;
            Ok(respond(batch.answer(app.publish_all(&queue, drafts).await?)))
        }
    }
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
