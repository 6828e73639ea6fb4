use std::time::{Duration, Instant};

use delayline_tokio::{Client, Verdict, Worker};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::bed::Bed;
use super::burst::body;
use super::rounds::{Base, Rounds, Sample, found};
use crate::{block_on, raise_descriptors};

const QUEUE: &str = "rare";
const PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing is asked for what is done to count as done.
const SILENCE: Duration = Duration::from_millis(300);
const DELAY: Duration = Duration::from_millis(200);
/// Longer than all of it.
const TAKE: Duration = Duration::from_secs(300);

/// One job at a time among many clients that wait for it.
pub struct Clients {
    /// How many clients, each to be measured.
    pub counts: Vec<usize>,
}

/// How a client waits.
#[derive(Clone, Copy)]
enum Waiting {
    Worker,
    Take,
}

impl Rounds for Clients {
    fn name(&self) -> &'static str {
        "clients"
    }

    fn round(&mut self, bed: &mut Bed, _: usize, jobs: usize) -> Vec<Sample> {
        let mut found = Vec::new();
        for &count in &self.counts {
            for (waiting, name) in [(Waiting::Worker, "workers"), (Waiting::Take, "takes")] {
                found.extend(block_on(among(bed, &format!("{count} {name}"), count, waiting, jobs)));
            }
        }
        found
    }
}

async fn among(bed: &mut Bed, case: &str, count: usize, waiting: Waiting, jobs: usize) -> Vec<Sample> {
    // Two connections a client, and as many sockets on the server's side.
    let _ = raise_descriptors();
    let publisher = bed.fresh_client().await;
    let (began, mut begins) = unbounded_channel();
    let mut all: Vec<(Client, JoinHandle<()>)> = Vec::new();
    for _ in 0..count {
        let client = bed.client().await;
        let waiting = waiting.begin(client.clone(), began.clone());
        all.push((client, waiting));
    }
    drop(began);
    silence(bed).await;
    let mut found = Vec::new();
    for (what, delay) in [("due at once", Duration::ZERO), ("due later", DELAY)] {
        let case = format!("{case}, {what}");
        found.extend(one_by_one(bed, &case, jobs, &publisher, delay, &mut begins).await);
    }
    for (client, waiting) in all {
        client.close().await;
        waiting.await.expect("no panic");
    }
    publisher.close().await;
    found
}

impl Waiting {
    /// Waits until the client is closed, and tells of each job.
    fn begin(self, client: Client, began: UnboundedSender<()>) -> JoinHandle<()> {
        let queue = client.bytes(QUEUE).expect("a name");
        tokio::spawn(async move {
            match self {
                Waiting::Worker => {
                    let worker = Worker::new(&client).queue(&queue, move || {
                        let _ = began.send(());
                        async {}
                    });
                    worker.run().await.expect("a worker that runs");
                }
                Waiting::Take => {
                    while let Ok(jobs) = queue.take().wait(TAKE).await {
                        for job in jobs {
                            let _ = began.send(());
                            client.settle(job.lease, Verdict::Ack).await.expect("acknowledged");
                        }
                    }
                }
            }
        })
    }
}

/// Publishes jobs, each when all is silent after the one before.
async fn one_by_one(
    bed: &mut Bed,
    case: &str,
    jobs: usize,
    publisher: &Client,
    delay: Duration,
    begins: &mut UnboundedReceiver<()>,
) -> Vec<Sample> {
    let queue = publisher.bytes(QUEUE).expect("a name");
    let before = bed.spent();
    for number in 0..jobs {
        queue.publish_bytes(body(number)).delay(delay).await.expect("a job is published");
        timeout(PATIENCE, begins.recv()).await.expect("it begins").expect("clients that wait");
        silence(bed).await;
    }
    let spent = bed.spent().since(before);
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let [calls, scripts, jobs] = [spent.calls as f64, spent.scripts as f64, jobs as f64];
    found(case, &Base::None, &[("calls a job", calls / jobs), ("scripts a job", scripts / jobs)])
}

/// Waits until nothing has been asked for a while.
async fn silence(bed: &mut Bed) {
    let begun = Instant::now();
    let (mut last, mut since) = (bed.spent(), begun);
    while since.elapsed() < SILENCE {
        assert!(begun.elapsed() < PATIENCE, "the clients do not become silent");
        sleep(SILENCE / 10).await;
        let now = bed.spent();
        if now.calls > last.calls {
            (last, since) = (now, Instant::now());
        }
    }
}
