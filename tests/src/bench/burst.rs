use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use delayline_core::wire::Value;
use delayline_tokio::{Client, Queue, Worker};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::bed::{Bed, Spent};
use super::pace::share;
use super::pings::Pings;

pub(super) const SLOTS: u16 = 100;
const PATIENCE: Duration = Duration::from_secs(120);
/// How long before the jobs are due they begin to be published, and how much longer for each of them.
pub(super) const LEAD: Duration = Duration::from_millis(1_500);
pub(super) const LEAD_A_JOB: Duration = Duration::from_micros(40);
/// How often it is tried to have all published before they are due, each time with twice the lead.
pub(super) const TRIES: u32 = 4;
/// How long before the jobs are due nothing more may be done.
const SPARE: Duration = Duration::from_millis(50);

/// Jobs of 100 bytes that are all due at one moment, and one worker that has waited for them.
#[derive(Clone, Copy)]
pub(super) struct Burst {
    /// Over how many queues, evenly.
    pub(super) queues: usize,
    pub(super) jobs: usize,
    /// Whether another client asks for nothing but answers meanwhile.
    pub(super) pinged: bool,
}

/// What it took from that moment until all were acknowledged.
pub(super) struct Burned {
    jobs: usize,
    took: Duration,
    spent: Spent,
    /// How long each PING of the other client took, in ms, in their order of length.
    pings: Vec<f64>,
}

impl Burst {
    pub(super) async fn run(self, bed: &mut Bed) -> Burned {
        let lead = LEAD + LEAD_A_JOB * u32::try_from(self.jobs).expect("not that many");
        for attempt in 0..TRIES {
            if let Some(burned) = self.attempt(bed, lead * 2_u32.pow(attempt)).await {
                return burned;
            }
        }
        panic!("{} jobs are not published within {:?}", self.jobs, lead * 2_u32.pow(TRIES - 1));
    }

    /// `None` if the jobs were due before all were published.
    async fn attempt(self, bed: &mut Bed, lead: Duration) -> Option<Burned> {
        let client = bed.fresh_client().await;
        let name = |number| client.bytes(format!("burst-{number}")).expect("a name");
        let queues: Vec<Queue> = (0..self.queues).map(name).collect();
        let begun = Arc::new(Begun { most: self.jobs, count: AtomicUsize::new(0), all: Notify::new() });
        let worker = tokio::spawn(worker(&client, &queues, &begun).run());
        let due = SystemTime::now() + lead;
        let job = |number: usize| queues[number % queues.len()].publish_bytes(body(number)).at(due);
        for published in queues[0].publish_all((0..self.jobs).map(job)).await {
            published.expect("a job is published");
        }
        let before = bed.spent();
        let burned = match due.duration_since(SystemTime::now() + SPARE) {
            Err(_) => None,
            Ok(wait) => {
                let start = Instant::now() + wait + SPARE;
                let pings = self.pinged.then(|| Pings::begin(bed.server().connect(), wait + SPARE));
                timeout(lead + PATIENCE, begun.all.notified()).await.expect("all jobs begin");
                let asked = acknowledged(bed, &queues).await;
                let took = start.elapsed();
                let pings = pings.map(Pings::end).unwrap_or_default();
                let mut spent = bed.spent().since(before);
                spent.calls -= asked + pings.len() as u64;
                Some(Burned { jobs: self.jobs, took, spent, pings })
            }
        };
        client.close().await;
        worker.await.expect("no panic").expect("a worker that ran");
        let count = begun.count.load(Ordering::Relaxed);
        assert!(burned.is_none() || count == self.jobs, "{count} runs of {} jobs", self.jobs);
        burned
    }
}

/// One that counts what begins, and does nothing else.
fn worker(client: &Client, queues: &[Queue], begun: &Arc<Begun>) -> Worker {
    queues.iter().fold(Worker::new(client).concurrency(SLOTS), |worker, queue| {
        let begun = begun.clone();
        worker.queue(queue, move || {
            begun.one();
            async {}
        })
    })
}

impl Burned {
    pub(super) fn figures(&self) -> Vec<(&'static str, f64)> {
        [vec![rate(self.jobs, self.took)], self.spent.figures(self.jobs)].concat()
    }

    /// How long another client's PINGs took.
    pub(super) fn ping_figures(&self) -> [(&'static str, f64); 3] {
        let at = |part| share(&self.pings, part);
        [("ms of a PING, p50", at(0.5)), ("ms of a PING, p99.9", at(0.999)), ("ms of a PING, max", at(1.0))]
    }
}

/// How many jobs a second.
pub(super) fn rate(jobs: usize, took: Duration) -> (&'static str, f64) {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let jobs = jobs as f64;
    ("jobs/s", jobs / took.as_secs_f64())
}

/// How many jobs have begun.
struct Begun {
    most: usize,
    count: AtomicUsize,
    all: Notify,
}

impl Begun {
    fn one(&self) {
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.most {
            self.all.notify_one();
        }
    }
}

/// Waits until no job is leased any more, and answers how many calls that took.
pub(super) async fn acknowledged(bed: &mut Bed, queues: &[Queue]) -> u64 {
    let leased = queues.iter().map(|queue| bed.key(queue.name(), ":leased"));
    let command: Vec<String> = ["EXISTS".to_owned()].into_iter().chain(leased).collect();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let end = Instant::now() + PATIENCE;
    let mut asked = 0;
    loop {
        asked += 1;
        match bed.ask(&command) {
            Value::Int(0) => return asked,
            Value::Int(_) => sleep(Duration::from_millis(1)).await,
            other => panic!("EXISTS: {other:?}"),
        }
        assert!(Instant::now() < end, "jobs are still leased after {PATIENCE:?}");
    }
}

/// 100 bytes of JSON.
pub(super) fn body(number: usize) -> Vec<u8> {
    format!("{{\"order\":{number:010},\"text\":\"{}\"}}", "x".repeat(70)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_as_many_bytes_as_is_said() {
        assert_eq!(body(17).len(), 100);
    }
}
