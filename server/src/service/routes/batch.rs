use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use delayline_http::body::json_too_large;
use delayline_http::item::{self, Outcome};
use delayline_http::{Batch, Form, NDJSON, Problem, trace};
use delayline_tokio::{QueueName, Trace};
use futures_util::{StreamExt, TryStreamExt};
use tracing::Instrument;

use super::options::{Said, headers_of};
use super::path::InPath;
use super::sender::Sender;
use crate::service::app::{App, Shared};
use crate::service::body::{Inbound, Unread};
use crate::service::lines::Line;
use crate::service::peers::Peer;
use crate::service::rejection::{Rejection, respond};
use crate::service::spool::{Full, Spool};

/// How many jobs of a batch are on their way at once.
const UNDER_WAY: usize = 64;

pub(super) async fn publish(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    headers: HeaderMap,
    Sender(context): Sender,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let headers = headers_of(&headers);
    let trace = trace(&headers);
    match Form::of(&headers)? {
        Form::Lines => Ok(streamed(app, Arc::clone(&context.peer), queue, trace, body)),
        Form::Array => {
            let (batch, drafts) = Batch::read(&body.json().await?, trace.as_ref())?;
            Ok(respond(batch.answer(app.publish_all(&queue, drafts).await?)))
        }
    }
}

/// Answers a line for each line as it is published, whether or not the answer is read meanwhile.
fn streamed(
    app: Shared,
    peer: Arc<Peer>,
    queue: QueueName,
    trace: Option<Trace>,
    mut body: Inbound,
) -> Response {
    let spool = Spool::new(Arc::clone(&peer));
    let answer = Body::from_stream(Arc::clone(&spool).read().map(Ok::<_, Infallible>));
    let serving = peer.also_serves();
    let publishing = async move {
        match publish_lines(&app, &peer, &queue, trace.as_ref(), &mut body, &spool).await {
            Ok(()) => spool.end(),
            Err(problem) => {
                spool.end_with(&line(&Outcome::error(None, problem)));
                // Whoever writes first and reads then would else find the connection broken.
                body.drain().await;
            }
        }
        drop(serving);
    };
    tokio::spawn(publishing.in_current_span());
    ([(header::CONTENT_TYPE, NDJSON)], answer).into_response()
}

/// Publishes the lines, until one can no longer be answered.
async fn publish_lines(
    app: &App,
    peer: &Peer,
    queue: &QueueName,
    trace: Option<&Trace>,
    body: &mut Inbound,
    spool: &Spool,
) -> Result<(), Problem> {
    let limit = app.max_payload.bytes.saturating_mul(2).saturating_add(1 << 16);
    let outcomes = body
        .lines(limit)
        .map_ok(async |line| {
            Ok(match line {
                Line::Whole(json) => {
                    let outcome = publish_one(app, queue, trace, &json).await;
                    peer.lets_go(json.len());
                    outcome
                }
                Line::TooLong => Outcome::error(None, line_too_long(limit)),
            })
        })
        .try_buffered(UNDER_WAY);
    let mut outcomes = pin!(outcomes);
    while let Some(outcome) = outcomes.next().await {
        let outcome = outcome.map_err(|why| match why {
            Unread::NoRoom => unread(),
            why => why.problem(json_too_large),
        })?;
        spool.put(&line(&outcome)).await.map_err(|Full| unread())?;
    }
    Ok(())
}

fn line_too_long(limit: usize) -> Problem {
    let detail = format!("the line is over {limit} bytes, so it was not read: send a smaller payload");
    Problem::too_large("payload_too_large", detail)
}

fn unread() -> Problem {
    let detail = "the lines from here on were not published, but for up to 64 of them: there is no room for more outcomes \
                  that are not read: read them while writing, or send shorter batches";
    Problem::conflict("outcomes_unread", detail)
}

fn line(outcome: &Outcome) -> Vec<u8> {
    let mut line = serde_json::to_vec(outcome).unwrap_or_default();
    line.push(b'\n');
    line
}

async fn publish_one(app: &App, queue: &QueueName, trace: Option<&Trace>, json: &[u8]) -> Outcome {
    let draft = match item::read(json, trace) {
        Ok(draft) => draft,
        Err(problem) => return Outcome::error(None, problem),
    };
    let id = draft.id.clone();
    let _under_way = app.lines.acquire().await;
    Outcome::of(id.as_ref(), app.publish(queue, draft).await)
}
