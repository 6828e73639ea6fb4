use std::path::PathBuf;

use delayline_core::wire::Value;
use delayline_core::{Keyspace, Prefix, QueueName, Shards};
use delayline_tokio::{Client, Pacing};

use super::usage;
use crate::{Connection, Flavour, Options as Server, RedisServer};

/// A server of the bench's own, and what it has spent.
pub(super) struct Bed {
    server: RedisServer,
    meter: Connection,
    keys: Keyspace,
}

/// What a server, and this process beside it, have spent and done so far, or between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Microseconds of the server's CPU.
    pub(super) redis_us: f64,
    /// Microseconds of this process's.
    pub(super) client_us: f64,
    /// Commands that the server carried out, those within scripts too.
    pub(super) calls: u64,
    /// Scripts among them.
    pub(super) scripts: u64,
}

impl Bed {
    /// Starts the usual server, or the one whose program is given.
    pub(super) fn start(program: Option<&PathBuf>) -> Bed {
        let flavour = program.map(|path| Flavour { name: "given", path: path.clone() });
        let server = RedisServer::start(Server { flavour, ..Server::default() });
        let meter = server.connect();
        Bed { server, meter, keys: Keyspace::new(&Prefix::default(), Shards::default()) }
    }

    pub(super) fn server(&self) -> &RedisServer {
        &self.server
    }

    /// What it says that it is, as `redis 7.0.15`.
    pub(super) fn name(&mut self) -> String {
        let text = info(&mut self.meter, "server");
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        // Valkey says for old clients' sake which Redis it is like.
        match (field("valkey_version:"), field("redis_version:")) {
            (Some(version), _) => format!("valkey {version}"),
            (None, version) => format!("redis {}", version.unwrap_or("of an unknown version")),
        }
    }

    /// A client of a deployment in which there is nothing yet.
    pub(super) async fn fresh_client(&mut self) -> Client {
        self.fresh_client_that_paces(Pacing::Punctual).await
    }

    /// The same, with what waits for company there.
    pub(super) async fn fresh_client_that_paces(&mut self, pacing: Pacing) -> Client {
        self.meter.ask(&["FLUSHALL", "SYNC"]);
        Client::builder().pacing(pacing).connect(&self.server.url()).await.expect("a client")
    }

    /// One more client.
    pub(super) async fn client(&self) -> Client {
        Client::connect(&self.server.url()).await.expect("a client")
    }

    /// What has been spent so far.
    pub(super) fn spent(&mut self) -> Spent {
        Spent::now(&mut self.meter)
    }

    /// Asks the server for anything.
    pub(super) fn ask(&mut self, words: &[&str]) -> Value {
        self.meter.ask(words)
    }

    /// One of a queue's keys, by how it ends.
    pub(super) fn key(&self, queue: &QueueName, ending: &str) -> String {
        let key = self.keys.queue_keys(queue).into_iter().find(|key| key.ends_with(ending));
        key.unwrap_or_else(|| panic!("no key ends with {ending}"))
    }
}

impl Spent {
    /// Asks the server.
    pub(super) fn now(connection: &mut Connection) -> Spent {
        let client_us = usage::of_this_process() * 1e6;
        let cpu = info(connection, "cpu");
        let seconds = |field: &str| -> f64 {
            cpu.lines().find_map(|line| line.strip_prefix(field)?.parse().ok()).unwrap_or(f64::NAN)
        };
        let redis_us = (seconds("used_cpu_user:") + seconds("used_cpu_sys:")) * 1e6;
        let stats = info(connection, "commandstats");
        let (mut calls, mut scripts) = (0, 0);
        for (name, values) in
            stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="))
        {
            let count: u64 = values.split(',').next().and_then(|count| count.parse().ok()).unwrap_or(0);
            match name {
                "info" => continue,
                "eval" | "evalsha" | "fcall" => scripts += count,
                _ => {}
            }
            calls += count;
        }
        Spent { redis_us, client_us, calls, scripts }
    }

    pub(super) fn since(self, before: Spent) -> Spent {
        Spent {
            redis_us: self.redis_us - before.redis_us,
            client_us: self.client_us - before.client_us,
            calls: self.calls - before.calls,
            scripts: self.scripts - before.scripts,
        }
    }

    /// What a job of so many has cost.
    pub(super) fn figures(&self, jobs: usize) -> Vec<(&'static str, f64)> {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (jobs, calls) = (jobs as f64, self.calls as f64);
        vec![
            ("µs of Redis a job", self.redis_us / jobs),
            ("µs of client a job", self.client_us / jobs),
            ("calls a job", calls / jobs),
        ]
    }
}

fn info(connection: &mut Connection, section: &str) -> String {
    match connection.ask(&["INFO", section]) {
        Value::Bytes(text) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("INFO {section}: {other:?}"),
    }
}
