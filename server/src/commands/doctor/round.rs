use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use delayline_tokio::{Client, Error, Queue, SettleOutcome, Verdict};

use super::finding::Finding;
use crate::failure::Failure;

const CHECK: &str = "round trip";
const WAIT: Duration = Duration::from_secs(2);
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Publishes, takes and acknowledges a job in a queue of its own, which is removed after.
pub(super) async fn check(client: Result<Client, Error>) -> Finding {
    const MEND: &str =
        "mend what the other checks found; if there is nothing, this is a bug of delayline: report it";
    let client = match client {
        Ok(client) => client,
        Err(error) => return Finding::error(CHECK, error.to_string(), MEND),
    };
    let begun = Instant::now();
    let done = round(&client).await;
    client.close().await;
    match done {
        Ok(()) => {
            let ms = begun.elapsed().as_millis();
            Finding::ok(CHECK, format!("a job was published, taken and acknowledged in {ms} ms"))
        }
        Err(why) => Finding::error(CHECK, why, MEND),
    }
}

async fn round(client: &Client) -> Result<(), String> {
    let name = format!("doctor-{:016x}", RandomState::new().build_hasher().finish());
    let name = name.parse().map_err(|error| format!("{error}"))?;
    let queue = crate::redis::queue(client, &name).map_err(|failure| failure.to_string())?;
    let done = carry(client, &queue).await;
    let destroyed = queue.destroy().await;
    done.map_err(|failure| failure.to_string())?;
    destroyed.map(drop).map_err(|error| format!("queue {name} cannot be removed again: {error}"))
}

async fn carry(client: &Client, queue: &Queue) -> Result<(), Failure> {
    let published = queue.publish_bytes("doctor").ttl(FORGOTTEN).timeout(WAIT).await?;
    let jobs = queue.take().wait(WAIT).await?;
    let job = jobs.into_iter().find(|job| job.lease.id == published.id);
    let job = job.ok_or(Failure::Queue(Error::Broken("the job that was published did not come".into())))?;
    match client.settle(job.lease, Verdict::Ack).await? {
        SettleOutcome::Done => Ok(()),
        other => Err(Failure::Queue(Error::Broken(format!("acknowledging was answered {other:?}")))),
    }
}
