use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use delayline_core::Keyspace;
use delayline_tokio::redis::cmd;
use delayline_tokio::{Client, Error, Prefix, Queue, QueueName, SettleOutcome, Shards, Verdict};

use super::finding::Finding;
use super::wire::Wire;
use crate::cli::stop::Stop;
use crate::failure::Failure;

const CHECK: &str = "round trip";
const WAIT: Duration = Duration::from_secs(5);
const FORGOTTEN: Duration = Duration::from_secs(60);
const MEND: &str =
    "mend what the other checks found; if there is nothing, this is a bug of delayline: report it";

/// That no round trip was made, since what it leaves behind might not be removed again.
pub(super) fn not_made(why: &str) -> Finding {
    Finding::error(CHECK, format!("not tried: {why}"), "mend that first")
}

/// Publishes, takes and acknowledges a job in a queue of its own, which is removed after whatever happens: also when the
/// command is told to stop.
pub(super) async fn check(
    client: Result<Client, Error>,
    wire: &mut Wire,
    prefix: &Prefix,
    stop: &Stop,
) -> Result<Finding, Failure> {
    let client = match client {
        Ok(client) => client,
        Err(error) => return Ok(Finding::error(CHECK, error.to_string(), MEND)),
    };
    let name = format!("doctor-{:016x}", RandomState::new().build_hasher().finish());
    let name: QueueName = name.parse().map_err(|error| Failure::Queue(Error::Name(error)))?;
    let begun = Instant::now();
    let done = tokio::select! {
        done = round(&client, &name) => done,
        () = stop.clone().asked() => Err(Failure::Interrupted),
    };
    let elapsed = begun.elapsed();
    // Nothing is sent for that queue any more, so what is removed does not come back.
    client.close().await;
    let removed = remove(wire, prefix, &name).await;
    match (done, removed) {
        (Err(Failure::Interrupted), _) => Err(Failure::Interrupted),
        (Err(failure), Ok(())) => Ok(Finding::error(CHECK, failure.to_string(), MEND)),
        (done, Err(why)) => {
            let failure = done.err().map(|failure| format!("{failure}; ")).unwrap_or_default();
            let detail = format!("{failure}queue {name} cannot be removed again: {why}");
            Ok(Finding::error(CHECK, detail, &format!("delayline destroy {name} --yes")))
        }
        (Ok(()), Ok(())) => {
            let detail = format!("a job was published, taken and acknowledged in {} ms", elapsed.as_millis());
            Ok(Finding::ok(CHECK, detail))
        }
    }
}

async fn round(client: &Client, name: &QueueName) -> Result<(), Failure> {
    let queue: Queue = crate::cli::redis::queue(client, name)?;
    let published = queue.publish_bytes("doctor").ttl(FORGOTTEN).timeout(WAIT).await?;
    let jobs = queue.take().wait(WAIT).await?;
    let job = jobs.into_iter().find(|job| job.lease.id == published.id);
    let job = job.ok_or(Failure::Queue(Error::Broken("the job that was published did not come".into())))?;
    match client.settle(job.lease, Verdict::Ack).await? {
        SettleOutcome::Done => Ok(()),
        other => Err(Failure::Queue(Error::Broken(format!("acknowledging was answered {other:?}")))),
    }
}

/// Removes the queue as `destroy` does, but by plain commands: what made the round trip fail may fail a script too.
async fn remove(wire: &mut Wire, prefix: &Prefix, name: &QueueName) -> Result<(), String> {
    let shards: Option<u16> = wire.ask(cmd("HGET").arg(format!("{{{prefix}}}:config")).arg("shards")).await?;
    let shards = shards.and_then(Shards::new).unwrap_or_default();
    let [agenda, queues, own @ ..] = Keyspace::new(prefix, shards).queue_keys(name);
    let unlinked: Result<(), String> = wire.ask(cmd("UNLINK").arg(&own)).await;
    let forgotten: Result<(), String> = wire.ask(cmd("ZREM").arg(agenda).arg(format!("q{name}"))).await;
    let unnamed: Result<(), String> = wire.ask(cmd("HDEL").arg(queues).arg(name.as_str())).await;
    unlinked.and(forgotten).and(unnamed)
}
