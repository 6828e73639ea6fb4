use std::path::PathBuf;
use std::time::{Duration, Instant};

use delayline_core::wire::Value;
use delayline_tokio::{Client, Queue};

use super::bed::Bed;
use super::burst::{Burst, body, rate};
use super::rounds::{Base, Rounds, Sample, found};
use crate::block_on;

const DAY_S: usize = 86_400;
const SPREAD_S: usize = 30 * DAY_S;
/// No divisor of the spread: due times come in no order.
const STRIDE_S: usize = 1_000_003;

/// What it costs that many jobs wait: publishing among them, their memory, and what it does to others when many are due.
pub struct Pending {
    /// How many wait, each on a server of its own.
    counts: Vec<usize>,
    /// How many are due in one millisecond, while another client asks for nothing but answers.
    drained: usize,
    server: Option<PathBuf>,
    /// Where they wait, once they do.
    waiting: Vec<Waiting>,
}

/// Jobs that wait.
struct Waiting {
    bed: Bed,
    client: Client,
    queue: Queue,
    /// How many were published.
    count: usize,
    bytes_a_job: f64,
}

impl Pending {
    /// The server's program is the usual one if none is given.
    pub fn new(counts: Vec<usize>, drained: usize, server: Option<PathBuf>) -> Pending {
        Pending { counts, drained, server, waiting: Vec::new() }
    }
}

impl Rounds for Pending {
    fn name(&self) -> &'static str {
        "pending"
    }

    fn cpu(&mut self) -> f64 {
        self.waiting.iter_mut().map(|waiting| waiting.bed.spent().redis_us / 1e6).sum()
    }

    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        if self.waiting.is_empty() {
            let waiting = |count: &usize| block_on(Waiting::fill(Bed::start(self.server.as_ref()), *count));
            self.waiting = self.counts.iter().map(waiting).collect();
        }
        let name = |count: &usize| format!("{count} pending");
        let base = self.counts.first().map_or(Base::None, |count| Base::Case(name(count)));
        let turns = self.counts.len();
        let mut cases: Vec<Vec<Sample>> = vec![Vec::new(); turns];
        for turn in 0..turns {
            let at = (turn + round) % turns;
            let figures = block_on(self.waiting[at].measure(jobs));
            cases[at] = found(&name(&self.counts[at]), &base, &figures);
        }
        let burst = Burst { queues: 1, jobs: self.drained, pinged: true };
        let burned = block_on(burst.run(bed));
        let figures = [burned.figures(), burned.ping_figures().into()].concat();
        cases.push(found(&format!("{} due in one ms", self.drained), &Base::None, &figures));
        cases.concat()
    }
}

impl Waiting {
    async fn fill(mut bed: Bed, count: usize) -> Waiting {
        let client = bed.fresh_client().await;
        let queue = client.bytes("pending").expect("a name");
        let before = used(&mut bed);
        let mut waiting = Waiting { bed, client, queue, count: 0, bytes_a_job: 0.0 };
        waiting.publish(count).await;
        #[expect(clippy::cast_precision_loss, reason = "what is lost is below a byte")]
        let bytes = (used(&mut waiting.bed) - before) as f64 / count as f64;
        waiting.bytes_a_job = bytes;
        waiting
    }

    /// Publishes some more.
    async fn measure(&mut self, jobs: usize) -> Vec<(&'static str, f64)> {
        let (before, begun) = (self.bed.spent(), Instant::now());
        self.publish(jobs).await;
        let (took, spent) = (begun.elapsed(), self.bed.spent().since(before));
        [vec![rate(jobs, took)], spent.figures(jobs), vec![("bytes a pending job", self.bytes_a_job)]]
            .concat()
    }

    /// Publishes jobs that are due within 30 days from tomorrow.
    async fn publish(&mut self, jobs: usize) {
        let job = |number: usize| {
            let after = DAY_S + number.wrapping_mul(STRIDE_S) % SPREAD_S;
            self.queue.publish_bytes(body(number)).delay(Duration::from_secs(after as u64))
        };
        for published in self.queue.publish_all((self.count..).take(jobs).map(job)).await {
            published.expect("a job is published");
        }
        self.count += jobs;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        block_on(self.client.clone().close());
    }
}

fn used(bed: &mut Bed) -> u64 {
    let Value::Bytes(text) = bed.ask(&["INFO", "memory"]) else { panic!("no text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let used = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|used| used.trim().parse().ok()).expect("used_memory")
}
