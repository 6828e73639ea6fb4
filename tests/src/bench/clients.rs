use std::time::{Duration, Instant};

use delayline_tokio::{Client, Error, Queue, Worker};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::bed::{Bed, Spent};
use super::burst::body;
use super::rounds::{Base, Rounds, Sample, found};
use crate::{block_on, raise_descriptors};

const PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing is asked for what is done to count as done.
const SILENCE: Duration = Duration::from_millis(300);
const DELAY: Duration = Duration::from_millis(200);

/// One job at a time among many clients, each with a worker that waits for it.
pub struct Clients {
    /// How many clients, each to be measured.
    pub counts: Vec<usize>,
}

impl Rounds for Clients {
    fn name(&self) -> &'static str {
        "clients"
    }

    fn round(&mut self, bed: &mut Bed, _: usize, jobs: usize) -> Vec<Sample> {
        let measured = self.counts.iter().flat_map(|count| block_on(among(bed, *count, jobs)));
        measured.collect()
    }
}

async fn among(bed: &mut Bed, count: usize, jobs: usize) -> Vec<Sample> {
    // Two connections a client, and as many sockets on the server's side.
    let _ = raise_descriptors();
    let first = bed.fresh_client().await;
    let (began, mut begins) = unbounded_channel();
    let mut all: Vec<(Client, JoinHandle<Result<(), Error>>)> = Vec::new();
    for _ in 0..count {
        let (client, began) = (bed.client().await, began.clone());
        let worker = Worker::new(&client).queue(&client.bytes("rare").expect("a name"), move || {
            let _ = began.send(());
            async {}
        });
        all.push((client, tokio::spawn(worker.run())));
    }
    let queue = first.bytes("rare").expect("a name");
    silence(bed).await;
    let mut found = Vec::new();
    for (what, delay) in [("due at once", Duration::ZERO), ("due later", DELAY)] {
        let case = format!("{count} clients, {what}");
        found.extend(one_by_one(bed, &case, jobs, &queue, delay, &mut begins).await);
    }
    for (client, worker) in all {
        client.close().await;
        worker.await.expect("no panic").expect("a worker that ran");
    }
    first.close().await;
    found
}

/// Publishes jobs, each when all is silent after the one before.
async fn one_by_one(
    bed: &mut Bed,
    case: &str,
    jobs: usize,
    queue: &Queue,
    delay: Duration,
    begins: &mut UnboundedReceiver<()>,
) -> Vec<Sample> {
    let before = bed.spent();
    for number in 0..jobs {
        queue.publish_bytes(body(number)).delay(delay).await.expect("a job is published");
        timeout(PATIENCE, begins.recv()).await.expect("it begins").expect("a worker that runs");
        silence(bed).await;
    }
    let spent = bed.spent().since(before);
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let a_job = |count: u64| count as f64 / jobs as f64;
    let figures = [
        ("calls a job", a_job(spent.calls)),
        ("scripts a job", a_job(spent.scripts)),
        ("µs of Redis a job", spent.redis_us / a_job(1).recip()),
    ];
    found(case, Base::None, &figures)
}

/// Waits until nothing has been asked for a while.
async fn silence(bed: &mut Bed) {
    let (mut last, mut since) = (bed.spent(), Instant::now());
    let end = since + PATIENCE;
    while since.elapsed() < SILENCE {
        assert!(Instant::now() < end, "the clients do not become silent");
        sleep(SILENCE / 10).await;
        let now = bed.spent();
        if Spent::since(now, last).calls > 0 {
            (last, since) = (now, Instant::now());
        }
    }
}
