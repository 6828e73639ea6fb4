use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use delayline_core::wire::{All, Form};
use delayline_core::{Command as Asked, Keyspace, Kind, UnixMicros};
use delayline_wasm::rest::{Answer, Landed, land, pipeline};
use serde::{Deserialize, Serialize};
use ureq::Agent;

use crate::scratch::Scratch;
use crate::{Process, RedisServer, until};

const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "a-token-of-tests";

/// A Redis as Upstash offers one: `delayline rest` in a process of its own, which can be told to fail.
#[derive(Debug)]
pub struct Rest {
    _process: Process,
    address: SocketAddr,
    agent: Agent,
    _scratch: Scratch,
}

/// What goes wrong with one of the requests to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// Nothing.
    Pass,
    /// It is refused with this status.
    Status {
        /// Which.
        status: u16,
    },
    /// It is carried out later.
    Delay {
        /// By how much.
        ms: u64,
    },
    /// It is carried out, and its connection closed instead of an answer.
    Drop,
    /// It is not carried out, and never answered.
    Hang,
    /// It is carried out, and never answered.
    HangAfter,
    /// It is carried out, and answered with what is not JSON.
    Garbage,
    /// It is carried out, and its connection closed in the middle of the answer.
    Cut,
    /// It finds that Redis has forgotten all scripts.
    Flush,
}

#[derive(Deserialize)]
struct Faults {
    left: Vec<Fault>,
    requests: u64,
}

impl Rest {
    /// Starts one before a Redis; `program` is the command line, `env!("CARGO_BIN_EXE_service")`.
    ///
    /// # Panics
    /// If it does not listen.
    pub fn start(program: &str, redis: &RedisServer) -> Rest {
        let scratch = Scratch::new("rest");
        let log = scratch.path().join("log");
        let mut command = Command::new(program);
        command.args([
            "rest",
            "--redis",
            &redis.url(),
            "--listen",
            "127.0.0.1:0",
            "--token",
            TOKEN,
            "--faults",
        ]);
        command.env("NO_COLOR", "1").env_remove("RUST_LOG");
        command.stdin(Stdio::null()).stderr(File::create(&log).expect("a log file"));
        let mut process = Process::start(&mut command);
        let agent = Agent::config_builder().http_status_as_error(false).build().into();
        let address = until("the address of the REST endpoint", PATIENCE, || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            if let Some(ended) = process.ended() {
                panic!("the REST endpoint ended with {ended}:\n{text}");
            }
            let address = text.split_once("listening on http://")?.1.split_once(',')?.0;
            Some(address.parse().unwrap_or_else(|_| panic!("{address} is no address")))
        });
        Rest { _process: process, address, agent, _scratch: scratch }
    }

    /// What a worker has as `UPSTASH_REDIS_REST_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a worker has as `UPSTASH_REDIS_REST_TOKEN`.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Lets one of the requests to come fail for each of these, in this order, after those that were told before.
    ///
    /// # Panics
    /// If the endpoint does not answer.
    pub fn fail(&self, faults: &[Fault]) {
        let told = serde_json::to_string(faults).expect("faults are JSON");
        let told = ureq::post(self.path()).header("authorization", bearer()).send(told);
        told.expect("an endpoint that fails as it is told");
    }

    /// The faults that no request has met yet.
    ///
    /// # Panics
    /// If the endpoint does not answer.
    pub fn left(&self) -> Vec<Fault> {
        self.faults().left
    }

    /// How many requests there were.
    ///
    /// # Panics
    /// If the endpoint does not answer.
    pub fn requests(&self) -> u64 {
        self.faults().requests
    }

    /// What becomes of commands that are sent together, by the codec of the edge. `clock` replaces the server's.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn send(&self, keys: &Keyspace, commands: &[(Asked, Form)], clock: Option<UnixMicros>) -> Landed {
        let kinds: Vec<Kind> = commands.iter().map(|(command, _)| command.kind()).collect();
        let json = pipeline(All, keys, commands.iter().map(|(command, form)| (command, *form)), clock);
        let asked = self.agent.post(format!("{}/pipeline", self.url()));
        let asked = asked.header("authorization", bearer()).header("upstash-encoding", "base64").send(&json);
        let mut answer = asked.expect("an answer");
        let (status, body) = (answer.status().as_u16(), answer.body_mut().read_to_vec());
        land(All, &kinds, Ok(Answer { status, body: body.expect("a whole answer") }))
    }

    fn faults(&self) -> Faults {
        let answer = ureq::get(self.path()).header("authorization", bearer()).call();
        let text = answer.expect("an endpoint that tells its faults").body_mut().read_to_string();
        serde_json::from_str(&text.expect("a text")).expect("faults")
    }

    fn path(&self) -> String {
        format!("{}/_faults", self.url())
    }
}

fn bearer() -> String {
    format!("Bearer {TOKEN}")
}
