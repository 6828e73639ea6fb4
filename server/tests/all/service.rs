use std::borrow::Borrow;

use clap::Parser;
use delayline::{Cli, Command, Failure, Server};
use reqwest::{Body, Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A service in this process, in memory unless it is told otherwise; it stops when this is dropped.
pub(crate) struct Service {
    pub(crate) base: String,
    http: Client,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Failure>>,
}

/// What a request was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) json: Value,
}

/// `delayline serve` with these arguments, on a port of its own.
pub(crate) async fn bind(arguments: &[&str]) -> Result<Server, Failure> {
    let usual = [("--listen", "127.0.0.1:0"), ("--redis", "memory://")];
    let usual = usual.into_iter().filter(|(name, _)| !arguments.contains(name));
    let usual = usual.flat_map(|(name, value)| [name, value]);
    let words = ["delayline", "serve"].into_iter().chain(usual).chain(arguments.iter().copied());
    let Cli { command: Command::Serve(serve), redis, .. } = Cli::parse_from(words) else {
        unreachable!("the command is serve");
    };
    serve.bind(&redis).await
}

impl Service {
    pub(crate) async fn start() -> Service {
        Service::with(&[]).await
    }

    pub(crate) async fn with(arguments: &[&str]) -> Service {
        let server = bind(arguments).await.unwrap();
        // At a Unix socket alone it has none.
        let base = server.address().map(|address| format!("http://{address}")).unwrap_or_default();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run_until(async {
            let _ = stopped.await;
        }));
        Service { base, http: Client::new(), stop, task }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        self.base.strip_prefix("http://").unwrap()
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap().unwrap();
    }

    /// Tells it to stop, and goes on.
    pub(crate) fn begin_stop(self) -> JoinHandle<Result<(), Failure>> {
        drop(self.stop);
        self.task
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        send(self.request(Method::POST, path).body(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl Into<Body>) -> Answer {
        send(self.request(Method::PUT, path).body(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: impl Into<Body>) -> Answer {
        send(self.request(Method::PATCH, path).body(body)).await
    }

    /// Publishes a job that is due at once.
    pub(crate) async fn publish(&self, queue: &str, id: &str) {
        let answer =
            self.post(&format!("/v1/queues/{queue}/jobs?id={id}"), format!("{{\"of\":\"{id}\"}}")).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    /// Takes one job, which must come.
    pub(crate) async fn take(&self, queue: &str) -> Value {
        let answer = self.post(&format!("/v1/take?queue={queue}&wait=20s"), "").await;
        let has_come = answer.status == 200;
        assert!(has_come, "{answer:?}; ready, delayed, leased and dead: {:?}", self.sizes(queue).await);
        answer.json["jobs"][0].clone()
    }

    /// The lease of one job, which must come.
    pub(crate) async fn lease(&self, queue: &str) -> String {
        text(&self.take(queue).await["lease"])
    }

    /// How many jobs are ready, delayed, leased and dead.
    pub(crate) async fn sizes(&self, queue: &str) -> [u64; 4] {
        let sizes = self.get(&format!("/v1/queues/{queue}")).await.json["sizes"].clone();
        ["ready", "delayed", "leased", "dead"].map(|state| sizes[state].as_u64().unwrap_or_default())
    }
}

pub(crate) async fn send(request: RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes().await.unwrap();
    let json = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    Answer { status, headers, json }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_string()
}

impl Answer {
    /// Checks that this is a problem of that status and code, whose detail contains `says`.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str, says: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        assert_eq!(self.json["status"], status, "{self:?}");
        assert_eq!(self.json["code"], code, "{self:?}");
        assert!(text(&self.json["detail"]).contains(says), "{says:?} is not in {self:?}");
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16, json: impl Borrow<Value>) {
        assert_eq!((self.status.as_u16(), &self.json), (status, json.borrow()), "{self:?}");
    }
}
