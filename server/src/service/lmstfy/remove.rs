use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use delayline_tokio::{CancelOutcome, Client, Error, JobId, Lease, Place, Queue, SettleOutcome, Verdict};

use super::Shared;
use super::answer::Refusal;
use super::target::Target;

/// How often a job is looked at that changes its state each time.
const LOOKS: u32 = 8;
/// How many jobs of a queue are taken away at once.
const PAGE: u16 = 256;

/// Ends a job, wherever it is: an ack if it is held, by whomever; a recall if it waits; for good if it is dead.
pub(super) async fn job(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
) -> Result<StatusCode, Refusal> {
    let client = &lmstfy.app.client;
    remove(client, &client.bytes(target.queue()?)?, &target.job).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a job, if there is one of that id. The wire does not say which delivery is meant, so the latest one is.
pub(super) async fn remove(client: &Client, queue: &Queue, id: &str) -> Result<(), Error> {
    let Ok(id) = id.parse::<JobId>() else { return Ok(()) };
    for _ in 0..LOOKS {
        if is_removed(client, queue, &id).await? {
            return Ok(());
        }
    }
    Err(Error::Broken(format!(
        "job {id} of queue {} changes its state each time it is looked at",
        queue.name()
    )))
}

/// Whether the job is gone now. It is not if its state was another than the one it was found in.
async fn is_removed(client: &Client, queue: &Queue, id: &JobId) -> Result<bool, Error> {
    let Some(found) = queue.inspect(id).await? else { return Ok(true) };
    Ok(match (found.place, found.state) {
        (Place::Ready | Place::Delayed, _) => {
            matches!(queue.cancel(id).await?, CancelOutcome::Cancelled | CancelOutcome::Gone)
        }
        (Place::Leased, Some(state)) => {
            let lease =
                Lease { queue: queue.name().clone(), id: id.clone(), fence: state.fence, retry_ms: 0 };
            match client.settle(lease, Verdict::Ack).await? {
                SettleOutcome::Stale | SettleOutcome::Conflict(_) => false,
                SettleOutcome::Done
                | SettleOutcome::Died
                | SettleOutcome::Expired
                | SettleOutcome::Gone
                | SettleOutcome::Repeat => true,
            }
        }
        (Place::Leased, None) => false,
        (Place::Dead, _) => queue.purge(vec![id.clone()]).await?.outcomes == [true],
    })
}

/// Takes the ready jobs of a queue away, those that are ready by now; delayed and held ones stay.
pub(super) async fn destroy(
    State(lmstfy): State<Shared>,
    Extension(target): Extension<Target>,
) -> Result<StatusCode, Refusal> {
    let queue = lmstfy.app.client.bytes(target.queue()?)?;
    let mut left = queue.stats(0).await?.ready;
    while left > 0 {
        let page = queue.list(Place::Ready, PAGE, None).await?;
        if page.items.is_empty() {
            break;
        }
        left = left.saturating_sub(page.items.len() as u64);
        queue.cancel_all(page.items.into_iter().map(|job| job.id).collect()).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
