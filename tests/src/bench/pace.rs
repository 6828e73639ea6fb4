use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_tokio::{Context, Pacing, Queue, Worker};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::bed::Bed;
use super::burst::{acknowledged, body};
use super::rounds::{Base, Rounds, Sample, found};
use crate::block_on;

const DELAY: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);
const SLOTS: u16 = 100;

/// Jobs that are published at a steady rate, each due half a second later, and a worker that waits for them; punctual and
/// thrifty.
pub struct Pace {
    /// How many jobs a second, each to be measured for as long as the fastest takes.
    pub rates: Vec<usize>,
}

impl Rounds for Pace {
    fn name(&self) -> &'static str {
        "pace"
    }

    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        let cases = self.rates.iter().flat_map(|&rate| [(rate, Pacing::Punctual), (rate, Pacing::Thrifty)]);
        let asked: Vec<_> = cases.collect();
        let turns = asked.len();
        let fastest = self.rates.iter().copied().max().unwrap_or(1);
        let mut cases: Vec<Vec<Sample>> = vec![Vec::new(); turns];
        for turn in 0..turns {
            let at = (turn + round) % turns;
            let (rate, pacing) = asked[at];
            let figures = block_on(steady(bed, rate, pacing, (jobs * rate).div_ceil(fastest)));
            let punctual = format!("{rate} jobs/s");
            cases[at] = match pacing {
                Pacing::Punctual => found(&punctual, &Base::None, &figures),
                Pacing::Thrifty => found(&format!("{punctual}, thrifty"), &Base::Case(punctual), &figures),
            };
        }
        cases.concat()
    }
}

async fn steady(bed: &mut Bed, rate: usize, pacing: Pacing, jobs: usize) -> Vec<(&'static str, f64)> {
    let client = bed.fresh_client_that_paces(pacing).await;
    let queue = client.bytes("paced").expect("a name");
    let (began, mut begins) = unbounded_channel();
    let worker = Worker::new(&client).concurrency(SLOTS).queue(&queue, move |job: Context| {
        let _ = began.send(late_ms(job.due.0));
        async {}
    });
    let worker = tokio::spawn(worker.run());
    // A first job: whatever is done once is done.
    queue.publish_bytes(body(0)).await.expect("a job is published");
    timeout(PATIENCE, begins.recv()).await.expect("it begins").expect("a worker that runs");
    acknowledged(bed, std::slice::from_ref(&queue)).await;
    let before = bed.spent();
    publish(&queue, rate, jobs).await;
    let mut late = Vec::with_capacity(jobs);
    while late.len() < jobs {
        late.push(
            timeout(PATIENCE, begins.recv()).await.expect("all jobs begin").expect("a worker that runs"),
        );
    }
    let asked = acknowledged(bed, std::slice::from_ref(&queue)).await;
    let mut spent = bed.spent().since(before);
    spent.calls -= asked;
    client.close().await;
    worker.await.expect("no panic").expect("a worker that ran");
    late.sort_by(f64::total_cmp);
    let at = |part: f64| share(&late, part);
    assert!(at(0.0) >= 0.0, "a job began {} ms early", -at(0.0));
    let late = vec![("ms late, p50", at(0.5)), ("ms late, p99", at(0.99)), ("ms late, max", at(1.0))];
    [late, spent.figures(jobs)].concat()
}

/// One job after the other, each at its time, whether those before have been accepted or not.
async fn publish(queue: &Queue, rate: usize, jobs: usize) {
    let begun = Instant::now();
    let mut publishing = JoinSet::new();
    let queue = Arc::new(queue.clone());
    for number in 0..jobs {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let after = Duration::from_secs_f64(number as f64 / rate as f64);
        sleep_until(begun + after).await;
        let queue = queue.clone();
        publishing.spawn(async move {
            queue.publish_bytes(body(number)).delay(DELAY).await.expect("a job is published");
        });
    }
    while let Some(published) = publishing.join_next().await {
        published.expect("no panic");
    }
}

/// What so large a part of sorted values is at most.
pub(super) fn share(sorted: &[f64], part: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// Redis's clock is this machine's.
fn late_ms(due_ms: u64) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    #[expect(clippy::cast_precision_loss, reason = "a difference of hours at most would be exact")]
    let late = now.as_micros() as f64 - due_ms as f64 * 1e3;
    late / 1e3
}
