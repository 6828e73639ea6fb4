use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use tokio::time::{Instant, sleep, timeout_at};

use super::Tally;
use crate::endpoint::Endpoint;
use crate::wire::Wire;

/// Where attackers come from, so that limits for each client keep them from the good one.
const FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);
/// How long an attacker that was sent away waits before it comes again.
const REST: Duration = Duration::from_secs(5);
/// The queue whose jobs are taken by clients that leave.
pub(super) const LEFT: &str = "left";
/// The largest JSON body.
const BODY: usize = 16 << 20;
/// How much of a batch one client sends whose outcomes it does not read.
const UNREAD: usize = 32 << 20;
/// How many names one client makes up.
const NAMES: usize = 5_000;

/// What attackers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Attack {
    /// Bodies of 16 MiB that stop a byte before their end.
    StalledBodies,
    /// Connections that send nothing, or half a head, and are never closed.
    OpenSockets,
    /// Takes that wait for minutes.
    WaitingTakes,
    /// Bodies of 16 MiB of `[0,0,…`.
    LongArrays,
    /// Jobs for ever new queues.
    MadeUpNames,
    /// Batches in NDJSON whose outcomes are not read.
    UnreadOutcomes,
    /// Takes, many in a row, of clients that leave without waiting for an answer.
    TakesThatLeave,
}

impl Attack {
    /// Each of them.
    pub fn all() -> &'static [Attack] {
        Attack::value_variants()
    }

    /// How many there are at once.
    pub(super) fn attackers(self) -> usize {
        match self {
            Attack::StalledBodies => 200,
            Attack::OpenSockets => 2_000,
            Attack::WaitingTakes => 10_000,
            Attack::LongArrays | Attack::MadeUpNames => 4,
            Attack::UnreadOutcomes | Attack::TakesThatLeave => 20,
        }
    }

    /// Attacks again and again until `end`.
    pub(super) async fn go_on(self, number: usize, to: Endpoint, tally: Arc<Tally>, end: Instant) {
        while Instant::now() < end {
            match timeout_at(end, self.once(number, &to, &tally)).await {
                Ok(Ok(status)) => tally.answered(status),
                Ok(Err(_)) => tally.closed(),
                Err(_) => tally.held(),
            }
            let rest = if self == Attack::TakesThatLeave { REST / 500 } else { REST };
            let _ = timeout_at(end, sleep(rest)).await;
        }
    }

    /// What it was answered, or how its connection ended.
    async fn once(self, number: usize, to: &Endpoint, tally: &Tally) -> io::Result<u16> {
        let mut wire = Wire::open(FROM, to).await?;
        match self {
            Attack::StalledBodies => {
                let path = "/v1/queues/stalled/batch";
                wire.send(wire.head("POST", path, &json(BODY - 1)).as_bytes()).await?;
                send_zeros(&mut wire, BODY - 2).await?;
            }
            Attack::OpenSockets if number.is_multiple_of(2) => {}
            Attack::OpenSockets => wire.send(b"GET /healthz HTTP/1.1\r\nHost: ").await?,
            Attack::WaitingTakes => {
                let path = format!("/v1/take?queue=waiting-{}&wait=5m", number % 10);
                wire.send(wire.head("POST", &path, "Content-Length: 0\r\n").as_bytes()).await?;
            }
            Attack::LongArrays => {
                let paths = ["/v1/queues/long/batch", "/v1/leases/settle", "/v1/queues/long/dead/purge"];
                wire.send(wire.head("POST", paths[number % 3], &json(BODY)).as_bytes()).await?;
                send_zeros(&mut wire, BODY).await?;
            }
            Attack::MadeUpNames => return make_up_names(&mut wire, number, tally).await,
            Attack::UnreadOutcomes => leave_unread(&mut wire, number).await?,
            Attack::TakesThatLeave => return take_and_leave(wire, tally).await,
        }
        Ok(wire.answer().await?.status)
    }
}

fn json(length: usize) -> String {
    format!("Content-Type: application/json\r\nContent-Length: {length}\r\n")
}

/// An array that does not end.
async fn send_zeros(wire: &mut Wire, length: usize) -> io::Result<()> {
    let chunk = "0,".repeat(1 << 15);
    wire.send(b"[").await?;
    let mut left = length - 1;
    while left > 0 {
        let sent = left.min(chunk.len());
        wire.send(&chunk.as_bytes()[..sent]).await?;
        left -= sent;
    }
    Ok(())
}

async fn make_up_names(wire: &mut Wire, number: usize, tally: &Tally) -> io::Result<u16> {
    for name in 0..NAMES {
        let path = format!("/v1/queues/made-up-{number}-{name}-{}/jobs?ttl=1s", tally.next());
        let answer = wire.ask("POST", &path, "a body").await?;
        tally.answered(answer.status);
        if name % 500 == 0 {
            tally.metrics(wire.ask("GET", "/metrics", "").await?.body.len());
        }
    }
    let metrics = wire.ask("GET", "/metrics", "").await?;
    tally.metrics(metrics.body.len());
    Ok(metrics.status)
}

async fn leave_unread(wire: &mut Wire, number: usize) -> io::Result<()> {
    let more = "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n";
    wire.send(wire.head("POST", "/v1/queues/unread/batch", more).as_bytes()).await?;
    let line = format!("{{\"id\":\"unread-{number}\",\"delay\":\"1h\",\"payload\":0}}\n");
    let lines = line.repeat(1_000);
    let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
    for _ in 0..UNREAD / chunk.len() {
        wire.send(chunk.as_bytes()).await?;
    }
    Ok(())
}

/// Publishes a job so that there is something to be lost, asks for it many times, for longer than the attack lasts, and is
/// gone.
async fn take_and_leave(mut wire: Wire, tally: &Tally) -> io::Result<u16> {
    let published = wire.ask("POST", &format!("/v1/queues/{LEFT}/jobs"), "a body").await?;
    let take = wire.head("POST", &format!("/v1/take?queue={LEFT}&wait=1m&lease=1h"), "Content-Length: 0\r\n");
    wire.send(take.repeat(10).as_bytes()).await?;
    tally.taken(wire.leave()?);
    Ok(published.status)
}
