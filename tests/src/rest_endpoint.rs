use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use clap::Parser;
use delayline::{Cli, Command, RestServer};
use delayline_core::wire::{All, Form};
use delayline_core::{Command as Asked, Keyspace, Kind, UnixMicros};
use delayline_wasm::rest::{Answer, Landed, land, pipeline};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::{Http, RedisServer};

/// What clients of the endpoint must know.
pub const TOKEN: &str = "a-token-for-tests";

/// `delayline rest` in front of a server, in a thread of this process.
#[derive(Debug)]
pub struct RestEndpoint {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RestEndpoint {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(server: &RedisServer) -> RestEndpoint {
        let redis = format!("--redis={}", server.url());
        let token = format!("--token={TOKEN}");
        let words = ["delayline", &redis, "rest", "--listen=127.0.0.1:0", &token, "--faults"];
        let Cli { command: Command::Rest(rest), redis, .. } = Cli::parse_from(words) else {
            unreachable!("the command is rest");
        };
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let bound = runtime.block_on(RestServer::bind(&rest, &redis));
        let server = bound.unwrap_or_else(|failure| panic!("{failure}"));
        let address = server.address();
        let serve = async move { server.run_until(async move { drop(stopped.await) }).await };
        let thread =
            thread::spawn(move || runtime.block_on(serve).unwrap_or_else(|failure| panic!("{failure}")));
        RestEndpoint { address, stop: Some(stop), thread: Some(thread) }
    }

    /// As clients write it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The answer to a pipeline's JSON.
    ///
    /// # Panics
    /// If there is none.
    pub fn post(&self, json: &[u8]) -> Answer {
        let authorization = format!("Bearer {TOKEN}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Upstash-Encoding", "base64"),
        ];
        let json = str::from_utf8(json).expect("JSON is text");
        let response = Http::new(self.address).ask_with("POST", "/pipeline", &headers, json);
        Answer { status: response.status, body: response.body.into_bytes() }
    }

    /// What becomes of commands that are sent together.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn send(&self, keys: &Keyspace, commands: &[(Asked, Form)], clock: Option<UnixMicros>) -> Landed {
        let kinds: Vec<Kind> = commands.iter().map(|(command, _)| command.kind()).collect();
        let json = pipeline(All, keys, commands.iter().map(|(command, form)| (command, *form)), clock);
        land(All, &kinds, Ok(self.post(&json)))
    }
}

impl Drop for RestEndpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the endpoint fails");
        }
    }
}
