//! lmstfy's API, byte for byte as its reference has it.

mod client;
mod consume;
mod deadletter;
mod jobs;
mod outage;
mod publish;
mod requests;
mod tokens;

use std::fmt::Write as _;

use delayline::Failure;
use reqwest::header::HeaderMap;
use reqwest::{Client, Method};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::service;

/// A token that the tests choose.
const TOKEN: &str = "01M7XABF4514NXTZ825W000000";

/// A service with lmstfy's two listeners in this process, and a token for namespace `ns`.
struct Lmstfy {
    api: String,
    admin: String,
    native: String,
    http: Client,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Failure>>,
}

/// What a request was answered, as it came.
#[derive(Debug)]
struct Reply {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Lmstfy {
    async fn start() -> Lmstfy {
        Lmstfy::with(&[]).await
    }

    async fn with(arguments: &[&str]) -> Lmstfy {
        let lmstfy = Lmstfy::without_token(arguments).await;
        let made = lmstfy.admin("POST", &format!("/token/ns?description=tests&token={TOKEN}"), "").await;
        assert!(made.status == 201 || made.body.contains("already existed"), "{made:?}");
        lmstfy
    }

    async fn without_token(arguments: &[&str]) -> Lmstfy {
        let listeners = ["--lmstfy", "127.0.0.1:0", "--lmstfy-admin", "127.0.0.1:0"];
        let server = service::bind(&[&listeners[..], arguments].concat()).await.unwrap();
        let [api, admin] = server.lmstfy_addresses().map(|address| format!("http://{}", address.unwrap()));
        let native = format!("http://{}", server.address().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run_until(async {
            let _ = stopped.await;
        }));
        Lmstfy { api, admin, native, http: Client::new(), stop, task }
    }

    /// Tells it to stop, and waits until it has.
    async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap().unwrap();
    }

    /// Where clients are heard, without the scheme.
    fn address(&self) -> &str {
        self.api.strip_prefix("http://").unwrap()
    }

    /// A request of a client with the token.
    async fn ask(&self, method: &str, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        self.ask_with(method, path, &[("X-Token", TOKEN)], body).await
    }

    async fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Reply {
        self.send(method, &format!("{}{path}", self.api), headers, body).await
    }

    /// A request of an administrator.
    async fn admin(&self, method: &str, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        self.send(method, &format!("{}{path}", self.admin), &[], body).await
    }

    async fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Reply {
        let mut request = self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), url).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let reply = Reply { status, headers, body: response.text().await.unwrap() };
        reply.has_request_id();
        reply
    }

    /// Publishes, and answers the job's id.
    async fn publish(&self, path_and_query: &str, body: &str) -> String {
        let reply = self.ask("PUT", path_and_query, body.to_owned()).await;
        let id = reply.json()["job_id"].as_str().unwrap_or_else(|| panic!("{reply:?}")).to_owned();
        reply.is_json(201, &format!(r#"{{"job_id":"{id}","msg":"published"}}"#));
        id
    }

    /// Consumes one job, which must come.
    async fn consume(&self, queue: &str, query: &str) -> Value {
        let reply = self.ask("GET", &format!("/api/ns/{queue}?timeout=60&{query}"), "").await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    /// How many jobs are ready, delayed, leased and dead, as the service's own API says.
    async fn sizes(&self, queue: &str) -> [u64; 4] {
        let url = format!("{}/v1/queues/ns~{queue}", self.native);
        let answer = service::send(self.http.get(url)).await;
        let sizes = &answer.json["sizes"];
        ["ready", "delayed", "leased", "dead"].map(|state| sizes[state].as_u64().unwrap_or_default())
    }
}

impl Reply {
    #[track_caller]
    fn is(&self, status: u16, content_type: &str, body: &str) {
        let found = self.headers.get("content-type").map_or("", |value| value.to_str().unwrap());
        assert_eq!((self.status, found, &*self.body), (status, content_type, body));
    }

    #[track_caller]
    fn is_json(&self, status: u16, body: &str) {
        self.is(status, "application/json; charset=utf-8", body);
    }

    #[track_caller]
    fn is_error(&self, status: u16, error: &str) {
        self.is_json(status, &format!(r#"{{"error":"{error}"}}"#));
    }

    /// Nothing, as after a deletion.
    #[track_caller]
    fn is_empty(&self, status: u16) {
        assert_eq!((self.status, &*self.body), (status, ""));
        assert!(!self.headers.contains_key("content-type"), "{self:?}");
    }

    /// The object of a job, whose age alone is not known before.
    #[track_caller]
    fn is_job(&self, expected: &str) {
        let elapsed = self.json()["elapsed_ms"].as_u64().unwrap_or_else(|| panic!("{self:?}"));
        assert!(elapsed < 60_000, "{self:?}");
        self.is_json(200, &expected.replace("ELAPSED", &elapsed.to_string()));
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Each answer has an id of 26 characters of Crockford's base 32.
    fn has_request_id(&self) {
        let id = self.headers.get("x-request-id").unwrap_or_else(|| panic!("{self:?}")).to_str().unwrap();
        assert!(is_ulid(id), "{id}");
    }
}

fn is_ulid(id: &str) -> bool {
    let is_digit = |byte: u8| {
        byte.is_ascii_digit() || byte.is_ascii_uppercase() && !matches!(byte, b'I' | b'L' | b'O' | b'U')
    };
    id.len() == 26 && id.bytes().all(is_digit)
}

/// Numbers in a JSON array.
fn array(from: usize, to: usize) -> String {
    let mut text = String::from("[");
    for number in from..to {
        let _ = write!(text, "{number},");
    }
    text.pop();
    text + "]"
}
