use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::idle::{Idle, alone};
use crate::endpoint::Endpoint;
use crate::wire::Wire;

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it rests between two jobs.
const REST: Duration = Duration::from_millis(20);

/// A client that publishes a job, takes it and acknowledges it, on a connection of each job's own, and asks a server that
/// does nothing else between two jobs.
pub(super) struct Good {
    to: Endpoint,
    idle: Idle,
    seen: Seen,
}

/// What the good client saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// How long each request took that was answered as it should be.
    pub(super) took: Times,
    /// How long the idle server took: what the machine costs, whatever the service does.
    pub(super) idle: Times,
    /// What was wrong with others.
    pub(super) failures: Vec<String>,
}

/// How long things took.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The time within which so many of a hundred ended.
    pub(super) fn percentile(&self, hundredth: usize) -> Option<Duration> {
        let mut took = self.0.clone();
        took.sort_unstable();
        took.get((took.len() * hundredth / 100).min(took.len().checked_sub(1)?)).copied()
    }
}

impl Good {
    pub(super) fn new(to: Endpoint) -> Good {
        Good { to, idle: Idle::start(), seen: Seen::default() }
    }

    /// Works for that long on a thread of its own, so that it waits for none of the attackers' tasks, and answers what it
    /// saw.
    pub(super) async fn work_for(mut self, length: Duration) -> Seen {
        let working = move || {
            self.seen = Seen::default();
            alone(async move {
                let end = Instant::now() + length;
                while Instant::now() < end {
                    self.work().await;
                    self.look_at_idle().await;
                    sleep(REST).await;
                }
                self.seen
            })
        };
        tokio::task::spawn_blocking(working).await.expect("the good client does not panic")
    }

    async fn look_at_idle(&mut self) {
        let begun = Instant::now();
        if self.idle.ask().await.is_ok() {
            self.seen.idle.0.push(begun.elapsed());
        }
    }

    pub(super) async fn work(&mut self) {
        if let Err(why) = self.job().await {
            self.seen.failures.push(why);
        }
    }

    async fn job(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        let wire = Wire::open(Ipv4Addr::LOCALHOST, &self.to).await;
        let mut wire = wire.map_err(|why| format!("no connection: {why}"))?;
        self.request(&mut wire, "/v1/queues/good/jobs", "a body", begun).await?;
        let taken = self.request(&mut wire, "/v1/take?queue=good&wait=5s", "", Instant::now()).await?;
        let job: Value = serde_json::from_str(&taken).map_err(|why| format!("{why}: {taken:?}"))?;
        let lease = job["lease"].as_str().or_else(|| job["jobs"][0]["lease"].as_str());
        let lease = lease.ok_or_else(|| format!("no lease: {taken:?}"))?;
        self.request(&mut wire, &format!("/v1/leases/{lease}/ack"), "", Instant::now()).await?;
        Ok(())
    }

    /// A request that began when its connection did, if it is the first of one.
    async fn request(
        &mut self,
        wire: &mut Wire,
        path: &str,
        body: &str,
        begun: Instant,
    ) -> Result<String, String> {
        let answer = timeout(PATIENCE, wire.ask("POST", path, body)).await.map_err(io::Error::from);
        let answer = answer.and_then(|answer| answer).map_err(|why| format!("{path}: {why}"))?;
        if !matches!(answer.status, 200 | 201) {
            return Err(format!("{path}: {} {}", answer.status, answer.body));
        }
        self.seen.took.0.push(begun.elapsed());
        Ok(answer.body)
    }
}

/// How many jobs of a queue are leased; none if there is no such queue.
pub(super) async fn leased(to: &Endpoint, queue: &str) -> Result<u64, String> {
    let asked = async {
        let mut wire = Wire::open(Ipv4Addr::LOCALHOST, to).await?;
        wire.ask("GET", &format!("/v1/queues/{queue}"), "").await
    };
    let answer = timeout(PATIENCE, asked).await.map_err(io::Error::from).and_then(|answer| answer);
    let answer = answer.map_err(|why| why.to_string())?;
    if answer.status == 404 {
        return Ok(0);
    }
    let shown: Value = serde_json::from_str(&answer.body).map_err(|why| why.to_string())?;
    shown["sizes"]["leased"].as_u64().ok_or(answer.body)
}
