use std::path::PathBuf;
use std::time::Duration;

use delayline_tokio::{Client, Worker};
use futures_util::future::join_all;
use tokio::time::sleep;

use super::bed::Bed;
use super::burst::body;
use super::rounds::{Base, Rounds, Sample, found};
use crate::block_on;

const DAY: Duration = Duration::from_secs(86_400);
/// How long what is done at the beginning takes.
const SETTLING: Duration = Duration::from_secs(3);

/// Clients with nothing to do, each on a server of its own, all at the same time.
pub struct Idle {
    /// How long they are watched.
    pub watched: Duration,
    /// The server's program; the usual one if `None`.
    pub server: Option<PathBuf>,
}

/// What is idle.
#[derive(Clone, Copy)]
enum Kind {
    Publisher,
    Worker,
    WorkerOfTen,
    WorkerWithJobsAhead,
}

impl Rounds for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn round(&mut self, _: &mut Bed, _: usize, jobs: usize) -> Vec<Sample> {
        let all = Kind::ALL.map(|kind| kind.watch(Bed::start(self.server.as_ref()), self.watched, jobs));
        block_on(join_all(all)).concat()
    }
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Publisher, Kind::Worker, Kind::WorkerOfTen, Kind::WorkerWithJobsAhead];

    fn name(self) -> &'static str {
        match self {
            Kind::Publisher => "a publisher",
            Kind::Worker => "a worker",
            Kind::WorkerOfTen => "a worker of 10 queues",
            Kind::WorkerWithJobsAhead => "a worker with jobs due tomorrow",
        }
    }

    async fn watch(self, mut bed: Bed, watched: Duration, jobs: usize) -> Vec<Sample> {
        let client = bed.fresh_client().await;
        let queue = client.bytes("idle-0").expect("a name");
        if matches!(self, Kind::WorkerWithJobsAhead) {
            let jobs = (0..jobs).map(|number| queue.publish_bytes(body(number)).delay(DAY));
            for published in queue.publish_all(jobs).await {
                published.expect("a job is published");
            }
        }
        let worker = self.worker(&client).map(|worker| tokio::spawn(worker.run()));
        sleep(SETTLING).await;
        let before = bed.spent();
        sleep(watched).await;
        let spent = bed.spent().since(before);
        client.close().await;
        if let Some(worker) = worker {
            worker.await.expect("no panic").expect("a worker that ran");
        }
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let a_minute = |count: u64| count as f64 * 60.0 / watched.as_secs_f64();
        let figures =
            [("calls a minute", a_minute(spent.calls)), ("scripts a minute", a_minute(spent.scripts))];
        found(self.name(), &Base::None, &figures)
    }

    fn worker(self, client: &Client) -> Option<Worker> {
        let queues = match self {
            Kind::Publisher => return None,
            Kind::Worker | Kind::WorkerWithJobsAhead => 1,
            Kind::WorkerOfTen => 10,
        };
        let queues = (0..queues).map(|number| client.bytes(format!("idle-{number}")).expect("a name"));
        Some(queues.fold(Worker::new(client), |worker, queue| worker.queue(&queue, || async {})))
    }
}
