use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use ureq::Agent;
use ureq::http::{Request, Response};

use super::Outcome;
use crate::scratch::Scratch;
use crate::{Process, report};

/// Longer than any cron of a test takes.
const PATIENCE: Duration = Duration::from_secs(120);
const BODY_MAX: u64 = 64 << 20;

/// A worker that runs. It is killed when it is dropped; in a test that fails, it then tells what it has logged.
#[derive(Debug)]
pub struct Worker {
    process: Process,
    http: SocketAddr,
    cron: SocketAddr,
    agent: Agent,
    scratch: Scratch,
}

#[derive(Deserialize)]
struct Ended {
    outcome: String,
}

impl Worker {
    pub(super) fn new(process: Process, http: SocketAddr, cron: SocketAddr, scratch: Scratch) -> Worker {
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        let agent = config.max_redirects(0).proxy(None).build().into();
        Worker { process, http, cron, agent, scratch }
    }

    /// Where it listens for requests: `http://127.0.0.1:1234`.
    pub fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Lets cron start it, as the trigger `* * * * *` now, and waits for its end and that of what it left to
    /// `waitUntil`.
    ///
    /// # Panics
    /// If it has no end.
    pub fn cron(&self) -> Outcome {
        let started = Request::get(format!("http://{}/", self.cron)).body(()).expect("a request");
        let text = self.exchange(started).into_body();
        let ended: Ended = serde_json::from_str(&text).unwrap_or_else(|_| panic!("a cron ended with {text}"));
        match &*ended.outcome {
            "ok" => Outcome::Ok,
            "exception" => Outcome::Exception,
            other => panic!("a cron ended with {other}"),
        }
    }

    /// Sends `GET path`, and answers what the worker does, whatever its status.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn get(&self, path: &str) -> Response<String> {
        self.ask(Request::get(path).body(()).expect("a request").map(|()| String::new()))
    }

    /// Sends a request whose URI is a path, and answers what the worker does, whatever its status.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn ask(&self, request: Request<String>) -> Response<String> {
        let (mut head, body) = request.into_parts();
        let uri = format!("{}{}", self.url(), head.uri);
        head.uri = uri.parse().expect("a path");
        self.exchange(Request::from_parts(head, body))
    }

    /// What it and workerd wrote.
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }

    /// How long workerd has had a CPU since it was started, in all its threads.
    ///
    /// # Panics
    /// If the system does not say.
    #[cfg(target_os = "linux")]
    pub fn cpu(&self) -> Duration {
        self.process.cpu()
    }

    fn exchange<B: ureq::AsSendBody>(&self, request: Request<B>) -> Response<String> {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.agent.run(request).unwrap_or_else(|why| panic!("{what}: {why}"));
        let (head, mut body) = answer.into_parts();
        let text = body.with_config().limit(BODY_MAX).read_to_string();
        Response::from_parts(head, text.unwrap_or_else(|why| panic!("{what}: {why}")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if thread::panicking() {
            report(&format!("what workerd wrote:\n{}", self.log()));
        }
    }
}
