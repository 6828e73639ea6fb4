//! What is read and answered without a server is what the service reads and answers.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use delayline_core::{
    Answer, Ask, Config, Credit, Engine, Event, Fault, Identity, JobIds, Millis, NewJob, Request, Shards,
    Token, UnixMicros, UnixMs,
};
use delayline_embedded::Store;
use delayline_http::body::PayloadLimit;
use delayline_http::{Asked, Call, Draft, Headers, Problem, Response, Terms, Time, inspected, published};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, send};

const MAX_PAYLOAD: PayloadLimit = PayloadLimit { bytes: 1024, setting: "--max-payload" };
const NOW: Millis = Millis(0);

/// The calls of publishers over an engine and a store in memory, without a runtime.
struct Edge {
    engine: Engine,
    store: Store,
    ids: JobIds,
}

/// A request, and what is answered.
struct Exchange {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn request(method: &'static str, path: &str, body: &str) -> Exchange {
    Exchange { method, path: path.to_owned(), headers: Vec::new(), body: body.to_owned() }
}

impl Exchange {
    fn header(mut self, name: &'static str, value: &str) -> Exchange {
        self.headers.push((name, value.to_owned()));
        self
    }
}

fn wall_us() -> UnixMicros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UnixMicros(u64::try_from(since.as_micros()).unwrap())
}

impl Edge {
    fn new() -> Edge {
        let config = Config { shards: Shards::default(), ..Config::default() };
        let engine = Engine::new(config, Identity(7), NOW).unwrap();
        Edge { engine, store: Store::new(Shards::default()), ids: JobIds::default() }
    }

    fn serve(&mut self, exchange: &Exchange) -> Response {
        self.call(exchange).unwrap_or_else(Response::from)
    }

    fn call(&mut self, exchange: &Exchange) -> Result<Response, Problem> {
        let (path, query) = exchange.path.split_once('?').unwrap_or((&exchange.path, ""));
        let headers = exchange.headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        let headers: Headers = headers.collect();
        let call = Call::read(exchange.method, path, query, &headers, MAX_PAYLOAD)?;
        let read = exchange.body.len().min(call.body_limit() + 1);
        match call.with_body(Bytes::copy_from_slice(&exchange.body.as_bytes()[..read]))? {
            Asked::Publish(publish, draft) => {
                let is_named = draft.id.is_some();
                let job = self.job(draft, publish.queue.clone())?;
                let published = published(self.publish(job), is_named)?;
                let found = publish.ask(&published).map_or(Ok(None), |ask| inspected(self.ask(ask)));
                publish.answer(&published, found)
            }
            Asked::Batch(queue, batch, drafts) => {
                let each = drafts.into_iter().map(|draft| {
                    let is_named = draft.id.is_some();
                    let job = self.job(draft, queue.clone())?;
                    published(self.publish(job), is_named)
                });
                Ok(batch.answer(each.collect::<Vec<_>>()))
            }
            Asked::Question(question) => {
                let ask = question.ask(wall_us().floor_ms())?;
                question.answer(self.ask(ask))
            }
        }
    }

    fn job(&mut self, draft: Draft, queue: delayline_core::QueueName) -> Result<NewJob, Problem> {
        let now: UnixMs = wall_us().floor_ms();
        let terms = Terms { now, max_payload: MAX_PAYLOAD.bytes, timeout_ms: 30_000 };
        draft.into_job(queue, terms, || self.ids.next(now, 7))
    }

    fn publish(&mut self, job: NewJob) -> Result<Answer, Fault> {
        self.engine.publish(NOW, Token(1), job).unwrap();
        self.answer()
    }

    fn ask(&mut self, ask: Ask) -> Result<Answer, Fault> {
        self.engine.request(NOW, Token(1), Request { ask, timeout_ms: 30_000 }).unwrap();
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer, Fault> {
        for _ in 0..1_000 {
            while let Some(transmit) = self.engine.poll_transmit(Credit::UNLIMITED) {
                let ticket = transmit.ticket;
                let commands = transmit.commands.iter();
                let replies: Vec<_> =
                    commands.map(|command| self.store.execute(wall_us(), command)).collect();
                self.engine.handle_replies(NOW, ticket, replies);
            }
            while let Some(event) = self.engine.poll_event() {
                if let Event::Answered { answer, .. } = event {
                    return answer;
                }
            }
        }
        panic!("the engine does not answer");
    }
}

/// Sends all in turn to both, and compares what they answer.
async fn compare(exchanges: impl IntoIterator<Item = (Exchange, u16)>) {
    let service = Service::with(&["--max-payload", "1KiB"]).await;
    let mut edge = Edge::new();
    for (exchange, status) in exchanges {
        let what = format!("{} {} {}", exchange.method, exchange.path, exchange.body);
        let method: Method = exchange.method.parse().unwrap();
        let mut request = service.request(method, &exchange.path);
        for (name, value) in &exchange.headers {
            request = request.header(*name, value);
        }
        let expected = send(request.body(exchange.body.clone())).await;
        let found = edge.serve(&exchange);
        assert_eq!((found.status, expected.status.as_u16()), (status, status), "{what}: {expected:?}");
        for name in ["content-type", "location", "etag", "retry-after", "allow"] {
            let expected = expected.headers.get(name).map(|value| value.to_str().unwrap());
            let found = found.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| &**value);
            assert_eq!(found, expected, "{what}: {name}");
        }
        if exchange.method != "HEAD" {
            let found: Value = serde_json::from_slice(&found.body).unwrap();
            let apart_ms = expiry_ms(&found).zip(expiry_ms(&expected.json)).map(|(a, b)| a.abs_diff(b));
            assert!(apart_ms.is_none_or(|ms| ms < 60_000), "{what}: expiries are {apart_ms:?} ms apart");
            assert_eq!(undated(found), undated(expected.json), "{what}");
        }
    }
    service.stop().await;
}

fn expiry_ms(answer: &Value) -> Option<u64> {
    let expires = answer["expires"].as_str().or(answer["job"]["expires"].as_str())?;
    Some(expires.parse::<Time>().unwrap().0.0)
}

/// An answer without what depends on when, and in which batches, jobs were published.
fn undated(mut answer: Value) -> String {
    let job = if answer["job"].is_object() { &mut answer["job"] } else { &mut answer };
    for name in ["published", "expires", "mean_bytes"] {
        if let Some(value) = job.get_mut(name).filter(|value| !value.is_null()) {
            *value = json!("some");
        }
    }
    answer.to_string()
}

const AT: &str = "at=2031-01-01T00:00:00Z";

#[tokio::test]
async fn a_job_is_published_shown_moved_and_cancelled_alike() {
    let of = |options: &str| format!("/v1/queues/q/jobs?{AT}&{options}");
    let described = request("POST", &of("id=b&attempts=3&backoff=15s+3m&ttl=2000d"), "plain");
    let described = described.header("Content-Type", "text/plain").header("Delayline-Header-Tenant", "x");
    compare([
        (request("POST", &of("id=a"), r#"{"x":1}"#), 201),
        (request("POST", &of("id=a"), r#"{"x":2}"#), 409),
        (request("POST", &of("id=a&replace=true"), r#"{"x":3}"#), 201),
        (described, 201),
        (request("POST", &of(""), "1").header("Idempotency-Key", "\"k\""), 201),
        (request("POST", &of(""), "1").header("Idempotency-Key", "k"), 200),
        (request("GET", "/v1/queues/q/jobs/a", ""), 200),
        (request("HEAD", "/v1/queues/q/jobs/a", ""), 200),
        (request("GET", "/v1/queues/q/jobs/b", ""), 200),
        (request("PATCH", "/v1/queues/q/jobs/b", r#"{"at":"2030-06-01T00:00:00+01:00"}"#), 200),
        (request("PATCH", "/v1/queues/q/jobs/b", r#"{"at":"2035-01-01T00:00:00Z"}"#), 409),
        (request("GET", "/v1/queues/q/jobs/b", ""), 200),
        (request("DELETE", "/v1/queues/q/jobs/b", ""), 200),
        (request("DELETE", "/v1/queues/q/jobs/b", ""), 404),
        (request("GET", "/v1/queues/q/jobs/b", ""), 404),
        (request("PATCH", "/v1/queues/q/jobs/b", r#"{"at":"2030-06-01T00:00:00Z"}"#), 404),
        (request("GET", "/v1/queues/q?hours=0", ""), 200),
        (request("GET", "/v1/queues/other", ""), 404),
    ])
    .await;
}

#[tokio::test]
async fn each_job_of_a_batch_ends_alike() {
    let array = json!([
        { "payload": { "a": 1 }, "id": "a", "at": "2031-01-01T00:00:00Z" },
        { "payload": "aGk=", "encoding": "base64", "id": "b", "at": "2031-01-01T00:00:00Z", "headers": { "x": "y" } },
        { "payload": 1, "id": "a", "replace": true, "at": "2031-02-01T00:00:00Z" },
        { "payload": 1, "id": "a" },
        { "payload": 1, "dealy": "5s" },
        { "payload": 1, "id": "a b" },
        { "payload": "x".repeat(2_000), "encoding": "text", "id": "c" },
        { "payload": 1, "id": "d", "attempts": 1_000 },
        { "payload": 1, "id": "e", "delay": "11000d" },
        { "payload": 1, "replace": true },
        { "payload": 1, "id": "f", "ttl": "1s", "delay": "5s" },
        { "payload": 1, "id": "g", "headers": { "x": "y".repeat(4_000) } },
        17
    ]);
    let many = json!(vec![1; 1_001]).to_string();
    let path = "/v1/queues/q/batch";
    compare([
        (request("POST", path, &array.to_string()), 200),
        (request("POST", path, "[]").header("Content-Type", "application/json"), 200),
        (request("POST", path, "[]").header("Content-Type", "application/x-www-form-urlencoded"), 200),
        (request("POST", path, "[]").header("Content-Type", "image/png"), 415),
        (request("POST", path, "{}"), 400),
        (request("POST", path, ""), 400),
        (request("POST", path, &many), 413),
        (request("POST", "/v1/queues/q/batch?delay=5s", "[]"), 400),
        (request("GET", "/v1/queues/q?hours=0", ""), 200),
        (request("GET", "/v1/queues/q/jobs/a", ""), 200),
        (request("GET", "/v1/queues/q/jobs/b", ""), 200),
    ])
    .await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_alike() {
    let publish = |options: &str| request("POST", &format!("/v1/queues/q/jobs?{options}"), "1");
    let bad = [
        "dealy=5s",
        "delay=5",
        "delay=5s&delay=6s",
        "delay=11000d",
        "at=tomorrow",
        "delay=5s&at=2026-11-21T10:00:05Z",
        "id=a%20b",
        "attempts=0",
        "attempts=many",
        "backoff=linear",
        "ttl=1s&delay=5s",
        "ttl=0s",
        "replace=true",
        "replace=yes&id=a",
    ];
    let refused = bad.map(|options| (publish(options), 400));
    let others = [
        (publish("").header("Delayline-Dealy", "5s"), 400),
        (publish("id=a").header("Idempotency-Key", "b"), 400),
        (publish("replace=true").header("Idempotency-Key", "b"), 400),
        (publish("").header("Delayline-Header-Long", &"x".repeat(4_000)), 400),
        (request("POST", "/v1/queues/q/jobs", &"x".repeat(1_025)), 413),
        (request("POST", "/v1/queues/a%20b/jobs", "1"), 400),
        (request("POST", "/v1/queues/%FF/jobs", "1"), 400),
        (request("GET", "/v1/queues/q/jobs/%FF", ""), 400),
        (request("GET", "/v1/queues/q/jobs/a%2Fb", ""), 400),
        (request("GET", "/v1/queues/q/jobs/a?x=1", ""), 400),
        (request("DELETE", "/v1/queues/q/jobs/a?x=1", ""), 400),
        (request("DELETE", "/v1/queues/q/jobs/a", "1"), 400),
        (request("PATCH", "/v1/queues/q/jobs/a?x=1", "{}"), 400),
        (request("PATCH", "/v1/queues/q/jobs/a", r#"{"delay":"11000d"}"#), 400),
        (request("PATCH", "/v1/queues/q/jobs/a", r#"{"delay":"5s","at":"2026-11-21T10:00:05Z"}"#), 400),
        (request("GET", "/v1/queues/q?hours=49", ""), 400),
        (request("GET", "/v1/queues/q", ""), 404),
        (request("PUT", "/v1/queues/q/jobs/a", "1"), 405),
        (request("GET", "/v1/queues/q/batch", ""), 405),
        (request("POST", "/v1/queues/q/jobs/a", "1"), 405),
        (request("GET", "/v1", ""), 404),
        (request("GET", "/v2/queues/q", ""), 404),
        (request("POST", "/v1/queues//jobs", "1"), 400),
        (request("GET", "/v1/queues//jobs/a", ""), 400),
        (request("GET", "/v1/queues/", ""), 404),
        (request("GET", "/v1/queues/q/", ""), 404),
        (request("GET", "/v1/queues/q/jobs/", ""), 404),
        (request("GET", "/v1/queues/q/jobs/a/b", ""), 404),
        (request("GET", "/v1/queues/q/%6Aobs/a", ""), 404),
    ];
    Box::pin(compare(refused.into_iter().chain(others))).await;
    // A worker does not edit jobs, so it names less that could be written.
    for body in ["", "{}", r#"{"attempts":5}"#] {
        let refused = Edge::new().serve(&request("PATCH", "/v1/queues/q/jobs/a", body));
        let body = String::from_utf8_lossy(&refused.body);
        assert!(refused.status == 400 && body.contains(r#"write {\"delay\": \"5s\"}"#), "{body}");
    }
}
