use std::sync::Arc;
use std::time::Duration;

use delayline_tokio::{Delivery, Error};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::claim::Claim;
use super::delivery::{Taken, deliver, deliver_batch};
use super::pushed_queue::PushedQueue;
use super::target::Room;

/// How long one take waits for a job.
const WAIT: Duration = Duration::from_secs(60);
/// How long to wait after a take that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
const TAKEN_MOST: usize = 256;
/// The most bytes of bodies in one batch, more than one job of it counted.
const BATCH_BYTES: usize = 4 << 20;

/// Takes the jobs of a queue as there is room for them, and starts their delivery, until the queue is no longer pushed or
/// the process is to stop; then ends with the last delivery.
pub(super) async fn run(mut queue: watch::Receiver<Arc<PushedQueue>>) {
    let mut stopping = queue.borrow().shared.stopping.clone();
    let mut deliveries = JoinSet::new();
    loop {
        let current = Arc::clone(&queue.borrow_and_update());
        while deliveries.try_join_next().is_some() {}
        let taken = tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => break,
            changed = queue.changed() => match changed {
                Ok(()) => continue,
                Err(_) => break,
            },
            taken = take(&current) => taken,
        };
        start(&current, taken, &mut deliveries);
    }
    while deliveries.join_next().await.is_some() {}
}

/// Waits for room, and then for jobs, of which there may be none.
async fn take(queue: &PushedQueue) -> Taken {
    let nothing = || Taken { jobs: Vec::new(), at: Instant::now() };
    let room = room(queue).await;
    let count = u16::try_from(room.min(TAKEN_MOST)).unwrap_or(u16::MAX);
    let taking = async {
        let handle = queue.shared.client.bytes(&queue.name)?;
        handle.take().count(count).lease(queue.lease()).wait(WAIT).await
    };
    let held = async {
        match &queue.target {
            Some(target) => target.held().await,
            None => std::future::pending().await,
        }
    };
    let taken: Result<Vec<Delivery>, Error> = tokio::select! {
        taken = taking => taken,
        () = held => return nothing(),
    };
    match taken {
        Ok(jobs) => Taken { jobs, at: Instant::now() },
        Err(error) => {
            tracing::debug!(queue = %queue.name, %error, "no jobs can be taken to push");
            sleep(AFTER_FAILURE).await;
            nothing()
        }
    }
}

/// How many jobs may be taken, once there is room for one.
async fn room(queue: &PushedQueue) -> usize {
    loop {
        queue.shared.load.has_room().await;
        if queue.slots.available_permits() == 0 {
            drop(queue.slots.acquire().await);
            continue;
        }
        let slots = queue.slots.available_permits();
        let Some(target) = &queue.target else { return slots };
        let freed = target.freed();
        match target.room(&queue.allowance, Instant::now().into_std()) {
            Room::For(requests) => {
                let requests = usize::try_from(requests).unwrap_or(usize::MAX).min(slots);
                let jobs = queue.settings.batch.map_or(1, usize::from);
                return requests.saturating_mul(jobs).max(1);
            }
            Room::At(then) => tokio::select! {
                () = sleep_until(then.into()) => {}
                () = freed => {}
            },
            Room::WhenFreed => freed.await,
        }
    }
}

fn start(queue: &Arc<PushedQueue>, taken: Taken, deliveries: &mut JoinSet<()>) {
    let Taken { jobs, at } = taken;
    let Some(most) = queue.settings.batch else {
        for job in jobs {
            let (queue, in_hand) = (Arc::clone(queue), InHand::new(queue, std::slice::from_ref(&job)));
            let claim = Claim::new(vec![job.lease.clone()], &queue.shared);
            deliveries.spawn(async move {
                deliver(queue, claim, job, at).await;
                drop(in_hand);
            });
        }
        return;
    };
    for jobs in batches(jobs, usize::from(most)) {
        let (queue, in_hand) = (Arc::clone(queue), InHand::new(queue, &jobs));
        let claim = Claim::new(jobs.iter().map(|job| job.lease.clone()).collect(), &queue.shared);
        deliveries.spawn(async move {
            deliver_batch(queue, claim, Taken { jobs, at }).await;
            drop(in_hand);
        });
    }
}

/// Parts of at most so many jobs, and not many more bytes than [`BATCH_BYTES`].
fn batches(jobs: Vec<Delivery>, most: usize) -> Vec<Vec<Delivery>> {
    let (mut batches, mut bytes): (Vec<Vec<Delivery>>, usize) = (Vec::new(), 0);
    for job in jobs {
        bytes += job.body.len();
        match batches.last_mut() {
            Some(batch) if batch.len() < most && bytes <= BATCH_BYTES => batch.push(job),
            _ => {
                bytes = job.body.len();
                batches.push(vec![job]);
            }
        }
    }
    batches
}

/// What a delivery takes of the room there is, until it has ended.
struct InHand {
    _slot: Option<OwnedSemaphorePermit>,
    _load: super::load::Loaded,
}

impl InHand {
    fn new(queue: &PushedQueue, jobs: &[Delivery]) -> InHand {
        let bytes = jobs.iter().map(|job| job.body.len()).sum();
        // None is left if another take has just used them: there are too many by one then, for once.
        InHand {
            _slot: Arc::clone(&queue.slots).try_acquire_owned().ok(),
            _load: queue.shared.load.add(bytes),
        }
    }
}
