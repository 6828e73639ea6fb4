use std::time::Duration;

use clap::Parser;
use delayline::{Cli, Command, Failure, RestServer};
use reqwest::{Body, Client, Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::redis_server::RedisServer;
use crate::rest_events::Events;
use crate::service::{Answer, send};

pub(crate) const TOKEN: &str = "s3cret";

/// `delayline rest` in this process; it stops when this is dropped.
pub(crate) struct RestEndpoint {
    pub(crate) base: String,
    http: Client,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Failure>>,
}

/// `delayline rest` with these arguments, on a port of its own.
pub(crate) async fn bind(redis: &str, arguments: &[&str]) -> Result<RestServer, Failure> {
    let usual = ["delayline", "rest", "--listen", "127.0.0.1:0", "--token", TOKEN, "--redis", redis];
    let Cli { command: Command::Rest(rest), redis, .. } = Cli::parse_from([&usual[..], arguments].concat())
    else {
        unreachable!("the command is rest");
    };
    RestServer::bind(&rest, &redis).await
}

impl RestEndpoint {
    pub(crate) async fn start(redis: &RedisServer) -> RestEndpoint {
        RestEndpoint::with(redis, &[]).await
    }

    pub(crate) async fn with(redis: &RedisServer, arguments: &[&str]) -> RestEndpoint {
        RestEndpoint::at(&redis.url(), arguments).await
    }

    pub(crate) async fn at(redis: &str, arguments: &[&str]) -> RestEndpoint {
        let server = bind(redis, arguments).await.unwrap();
        let base = format!("http://{}", server.address());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run_until(async {
            let _ = stopped.await;
        }));
        let http = Client::builder().read_timeout(Duration::from_secs(60)).build().unwrap();
        RestEndpoint { base, http, stop, task }
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap().unwrap();
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        self.base.strip_prefix("http://").unwrap()
    }

    /// A request without a token.
    pub(crate) fn stranger(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.stranger(method, path).bearer_auth(TOKEN)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        send(self.request(Method::POST, path).body(body)).await
    }

    /// What a POST is answered whose strings come in base64.
    pub(crate) async fn post_base64(&self, path: &str, body: impl Into<Body>) -> Answer {
        send(self.request(Method::POST, path).header("Upstash-Encoding", "base64").body(body)).await
    }

    /// What a command is answered, in plain text.
    pub(crate) async fn ask(&self, command: Value) -> Answer {
        self.post("/", command.to_string()).await
    }

    pub(crate) async fn ask_base64(&self, command: Value) -> Answer {
        self.post_base64("/", command.to_string()).await
    }

    /// What a request for an event stream is answered.
    pub(crate) async fn listen(&self, path: &str) -> Response {
        self.request(Method::GET, path).header("Accept", "text/event-stream").send().await.unwrap()
    }

    /// The events of a subscription.
    pub(crate) async fn events(&self, path: &str) -> Events {
        Events::of(self.listen(path).await)
    }

    pub(crate) async fn plan(&self, faults: Value) {
        assert_eq!(self.post("/_faults", faults.to_string()).await.status, 200, "{faults}");
    }
}
