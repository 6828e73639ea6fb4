use std::collections::BTreeMap;
use std::thread_local;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use bytes::Bytes;
use clap::Parser;
use delayline::{Cli, Command, Door, Server};
use delayline_core::{JobId, QueueName};
use futures_util::stream;
use serde_json::Value as Json;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The largest payload that the service takes here.
const MAX_PAYLOAD: usize = 1_024;
/// The longest line of a batch that it reads.
const LONGEST_LINE: usize = 2 * MAX_PAYLOAD + (1 << 16);
const REQUESTS: usize = 8;
const CHUNK: usize = 61;
const SEPARATOR: &[u8] = b"\n%%%\n";
/// How long a take may wait before its client goes away; anything else is answered within the other.
const BORED: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(20);

thread_local! {
    static SERVICE: Service = Service::start();
}

/// Requests as text, separated by lines of `%%%`, to a service in memory. None is answered 5xx; what is refused says why;
/// what is too large is refused as such; as many jobs are there as were said to be created, and each line or item of a
/// batch is answered.
///
/// # Panics
/// If not.
pub fn http(bytes: &[u8]) {
    SERVICE.with(|service| service.runtime.block_on(service.converse(bytes)));
}

struct Service {
    runtime: Runtime,
    door: Door,
    _server: Server,
}

/// A request, as it was written.
struct Asked {
    method: Method,
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

struct Answer {
    status: StatusCode,
    content_type: String,
    body: Bytes,
}

/// What is known of the queues from the answers.
#[derive(Default)]
struct Tally {
    created: u64,
    destroyed: bool,
}

impl Service {
    fn start() -> Service {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let max_payload = format!("--max-payload={MAX_PAYLOAD}B");
        let words = ["delayline", "--redis=memory://", "serve", "--listen=127.0.0.1:0", &max_payload];
        let Cli { command: Command::Serve(serve), redis, .. } = Cli::parse_from(words) else {
            unreachable!("the command is serve");
        };
        let server = runtime.block_on(serve.bind(&redis));
        let server = server.unwrap_or_else(|failure| panic!("{failure}"));
        Service { door: server.door(), runtime, _server: server }
    }

    async fn converse(&self, bytes: &[u8]) {
        let mut tally = Tally::default();
        for text in split(bytes, SEPARATOR).into_iter().take(REQUESTS) {
            if let Some(asked) = Asked::read(text) {
                let answer = self.answer(&asked).await;
                if let Some(answer) = answer {
                    fits(&asked, &answer, &mut tally);
                }
            }
        }
        self.audit(&tally).await;
    }

    /// What is answered; nothing if a take had to wait.
    async fn answer(&self, asked: &Asked) -> Option<Answer> {
        let is_take = asked.uri.path() == "/v1/take";
        let answered = timeout(if is_take { BORED } else { PATIENCE }, self.ask(asked.request())).await;
        assert!(is_take || answered.is_ok(), "{} {} is not answered", asked.method, asked.uri);
        answered.ok()
    }

    async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.door.answer(request).await;
        let (parts, body) = response.into_parts();
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Answer {
            status: parts.status,
            content_type: content_type.unwrap_or_default().to_string(),
            body: to_bytes(body, usize::MAX).await.expect("a whole body"),
        }
    }

    async fn read(&self, method: Method, path: &str) -> Json {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .body(Body::empty())
            .expect("a request");
        let answer = self.ask(request).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.status);
        serde_json::from_slice(&answer.body).expect("JSON")
    }

    /// Counts what is there, then removes it.
    async fn audit(&self, tally: &Tally) {
        let (mut published, mut cursor) = (0, String::new());
        let mut queues = Vec::new();
        loop {
            let page = self.read(Method::GET, &format!("/v1/queues?count=100{cursor}")).await;
            let names = page["queues"].as_array().expect("queues");
            queues.extend(names.iter().filter_map(Json::as_str).map(String::from));
            let Some(next) = page["cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        for queue in queues {
            let shown = self.read(Method::GET, &format!("/v1/queues/{queue}?hours=1")).await;
            let counters: BTreeMap<String, u64> =
                serde_json::from_value(shown["counters"].clone()).expect("counters");
            let of = |names: &[&str]| names.iter().map(|name| counters[*name]).sum::<u64>();
            let gone = of(&["acked", "cancelled", "expired", "purged", "forwarded", "lost"]);
            let sizes: BTreeMap<String, u64> = serde_json::from_value(shown["sizes"].clone()).expect("sizes");
            assert_eq!(sizes.values().sum::<u64>(), counters["published"] - gone, "{shown}");
            assert_eq!(counters["lost"] + counters["unreadable"] + counters["newer"], 0, "{shown}");
            published += counters["published"];
            self.read(Method::DELETE, &format!("/v1/queues/{queue}")).await;
        }
        assert!(tally.destroyed || published == tally.created, "{published} of {} jobs", tally.created);
    }
}

impl Asked {
    /// Head, an empty line, body; what no HTTP server lets through is nothing.
    fn read(text: &[u8]) -> Option<Asked> {
        let end = text.windows(2).position(|two| two == b"\n\n");
        let (head, body) = end.map_or((text, &[][..]), |end| (&text[..end], &text[end + 2..]));
        let mut lines = split(head, b"\n").into_iter();
        let first = str::from_utf8(lines.next()?).ok()?;
        let (method, uri) = first.split_once(' ')?;
        let header = |line: &[u8]| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            Some((name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?))
        };
        Some(Asked {
            method: Method::from_bytes(method.as_bytes()).ok()?,
            uri: uri.parse().ok().filter(|uri: &Uri| uri.path().starts_with('/'))?,
            headers: lines.filter_map(header).take(32).collect(),
            body: Bytes::copy_from_slice(body),
        })
    }

    fn request(&self) -> Request<Body> {
        let chunks: Vec<Result<Bytes, std::io::Error>> =
            self.body.chunks(CHUNK).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        let mut request = Request::new(Body::from_stream(stream::iter(chunks)));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().extend(self.headers.iter().cloned());
        request.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
        request
    }

    /// The parts of the path below `/v1/queues`, if the method is this one.
    fn below_queues(&self, method: &Method) -> Option<Vec<&str>> {
        let below = self.uri.path().strip_prefix("/v1/queues/").filter(|_| self.method == *method)?;
        Some(below.split('/').collect())
    }

    /// A publish with a good queue and nothing else to find fault with.
    fn is_plain_publish(&self) -> bool {
        matches!(self.below_queues(&Method::POST).as_deref(), Some([queue, "jobs"]) if queue.parse::<QueueName>().is_ok())
            && self.uri.query().is_none()
            && self.headers.is_empty()
    }
}

fn fits(asked: &Asked, answer: &Answer, tally: &mut Tally) {
    let Answer { status, content_type, body } = answer;
    let what = || format!("{} {}: {status} {}", asked.method, asked.uri, String::from_utf8_lossy(body));
    assert!(!status.is_server_error(), "{}", what());
    if status.is_client_error() && asked.method != Method::HEAD {
        assert_eq!(content_type, "application/problem+json", "{}", what());
        let problem: Json =
            serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {}", what()));
        assert_eq!(problem["status"], status.as_u16(), "{}", what());
        for field in ["code", "detail", "title"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{}", what());
        }
    }
    if asked.is_plain_publish() {
        let expected =
            if asked.body.len() > MAX_PAYLOAD { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::CREATED };
        let is_refused = *status == StatusCode::TOO_MANY_REQUESTS
            || *status == StatusCode::BAD_REQUEST && what().contains("options_in_body");
        assert!(*status == expected || is_refused, "{}", what());
    }
    let results = match content_type.as_str() {
        "application/json" if asked.method != Method::HEAD => {
            let json: Json =
                serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {}", what()));
            let results = json["results"].as_array().cloned();
            results.inspect(|results| assert_eq!(results.len(), items(&asked.body), "{}", what()))
        }
        "application/x-ndjson" => {
            let results: Vec<Json> = lines(body)
                .map(|line| {
                    serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {}", what()))
                })
                .collect();
            assert_eq!(results.len(), lines(&asked.body).count(), "{}", what());
            Some(results)
        }
        _ => None,
    };
    let created = results.iter().flatten().filter(|result| result["status"] == "created");
    for result in created.clone() {
        assert!(result["id"].as_str().is_some_and(|id| id.parse::<JobId>().is_ok()), "{}", what());
    }
    tally.created += created.count() as u64 + u64::from(*status == StatusCode::CREATED);
    let removed = asked.below_queues(&Method::DELETE).is_some_and(|path| path.len() == 1);
    tally.destroyed |= removed && status.is_success();
}

/// How many items of an array, or of one of ids.
fn items(body: &[u8]) -> usize {
    let json: Json = serde_json::from_slice(body).unwrap_or_default();
    json.as_array().or(json["ids"].as_array()).map_or(0, Vec::len)
}

/// The lines that are not blank.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    assert!(body.len() <= LONGEST_LINE, "an input beyond what this counts");
    body.split(|byte| *byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace))
}

fn split<'a>(bytes: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(separator.len()).position(|window| window == separator) {
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}
