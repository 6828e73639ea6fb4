use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use delayline_core::{Keyspace, Prefix, QueueName, Shard, Shards};
use delayline_tokio::{Client, Error, Place, Queue};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::history::{History, Ledger, Letter};
use super::load::{LONGEST, Load, TAKEN, WORKED};
use super::parts::Parts;
use super::plan::LEASE;
use crate::words;

/// A pump that was killed leaves its lease, and what it had in mind, for so long.
const PUMP_LEASE: u64 = 30_000;
/// A worker that was not woken asks again after so long.
const POLL: u64 = 30_000;
/// A connection that is silent is given up after so long, and made again.
const SILENCE: u64 = 15_000;
/// The most attempts of a job that always fails; others fail twice at most, and all may end with a lease once more.
const FAILURES: u64 = 4;
/// Two busy cores are so much slower than all of that on its own.
const SLACK: u64 = 2;
const LOOK: Duration = Duration::from_millis(50);

/// Waits until nothing waits and nothing is held, ends all parts, and reads what is left. How long it took to settle.
pub(super) fn settle(
    runtime: &Runtime,
    parts: &mut Parts,
    load: &Load,
    taking: JoinHandle<()>,
    history: &mut History,
) -> Duration {
    let begun = Instant::now();
    let client = runtime.block_on(Client::connect(&parts.primary().url())).expect("a client");
    let queues: Vec<Queue> = [WORKED, TAKEN].map(|name| client.bytes(name).expect("a name")).into();
    history.held = runtime.block_on(held(&queues)).expect("an answer of Redis");
    let settled = begun.elapsed();
    load.end();
    runtime.block_on(taking).expect("takers end");
    runtime.block_on(read(&queues, history)).expect("an answer of Redis");
    runtime.block_on(async {
        for queue in &queues {
            queue.purge_all().await.expect("an answer of Redis");
        }
        client.close().await;
    });
    if history.held.is_empty() {
        tidied(parts);
    }
    history.oddities.extend(parts.stop());
    if history.held.is_empty() {
        history.keys = left(parts);
    }
    settled
}

/// Waits until who tends the queues has found that there is nothing to do any more.
fn tidied(parts: &mut Parts) {
    let end = Instant::now() + Duration::from_millis((PUMP_LEASE + POLL + LEASE) * SLACK);
    while Instant::now() < end && !left(parts).is_empty() {
        thread::sleep(LOOK);
    }
}

/// Waits for queues without jobs; which are left when no more patience is.
async fn held(queues: &[Queue]) -> Result<Vec<String>, Error> {
    let end = Instant::now() + patience();
    loop {
        let mut are_idle = true;
        for queue in queues {
            let stats = queue.stats(0).await?;
            are_idle &= stats.ready + stats.delayed + stats.leased == 0;
        }
        if are_idle {
            return Ok(Vec::new());
        }
        if Instant::now() > end {
            break;
        }
        sleep(LOOK).await;
    }
    let mut held = Vec::new();
    for queue in queues {
        for place in [Place::Ready, Place::Delayed, Place::Leased] {
            held.extend(queue.list(place, 256, None).await?.items.into_iter().map(|job| job.id.to_string()));
        }
    }
    Ok(held)
}

fn patience() -> Duration {
    let [delay, run, backoff, snooze] = LONGEST;
    let life = delay + snooze + FAILURES * (run + backoff + LEASE);
    Duration::from_millis((PUMP_LEASE + POLL + SILENCE + life) * SLACK)
}

async fn read(queues: &[Queue<Bytes>], history: &mut History) -> Result<(), Error> {
    for queue in queues {
        let stats = queue.stats(0).await?;
        let holds = stats.ready + stats.delayed + stats.leased + stats.dead;
        let ledger = Ledger { counters: stats.counters, holds, dead: stats.dead };
        history.ledgers.insert(queue.name().to_string(), ledger);
        let mut cursor = None;
        loop {
            let page = queue.dead_letters(256, cursor.as_ref()).await?;
            for job in page.items {
                let letter = Letter {
                    published: job.contents.as_ref().map_or(0, |contents| contents.published.0),
                    reason: job.last_reason().unwrap_or_default().to_string(),
                    attempt: job.attempt(),
                };
                history.dead.insert(job.id.to_string(), letter);
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(())
}

/// The keys that should not be, once every job is gone. Who was killed stays on a list of those who wait, for 10 min or until
/// it is called in vain.
fn left(parts: &mut Parts) -> Vec<String> {
    let keys = Keyspace::new(&Prefix::default(), Shards::default());
    let [_, names, lease] = keys.shard_keys(Shard(0));
    let queues = [WORKED, TAKEN].map(|name| {
        let [_, _, meta, _, _, _, _, _, _, waiting, _] =
            keys.queue_keys(&name.parse::<QueueName>().expect("a name"));
        [meta, waiting]
    });
    let kept = [keys.config().to_string(), names, lease].into_iter().chain(queues.into_iter().flatten());
    let kept: BTreeSet<String> = kept.collect();
    let found = words(parts.primary().connect().ask(&["KEYS", "*"])).into_iter();
    let found = found.map(|key| match key {
        delayline_core::wire::Value::Bytes(text) => String::from_utf8_lossy(&text).into_owned(),
        other => format!("{other:?}"),
    });
    found.filter(|key| !kept.contains(key)).collect()
}
