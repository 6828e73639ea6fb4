//! What it costs that many takes wait.

use std::time::{Duration, Instant};

use bytes::Bytes;
use delayline_core::{
    Answer, Config, Credit, Engine, Event, Identity, JobId, Millis, NewJob, QueueName, Shard, Shards, Take,
    Token, UnixMicros, Wakeup,
};
use delayline_embedded::Store;
use delayline_tests::measure;

use crate::quiet::quiet;

const START: UnixMicros = UnixMicros(1_760_000_000_000_000);
const NOW: Millis = Millis(0);
const WAIT_MS: u64 = 60_000;
const JOBS: u64 = 300;
const FEW: u64 = 500;
const MANY: u64 = 10_000;
/// An answer that looked at each of those who wait would cost twenty times as much.
const MOST: u32 = 4;

#[test]
fn a_job_is_handed_out_at_the_same_cost_however_many_wait_for_one() {
    let _quiet = quiet();
    measure("jobs handed out one by one", || {
        let [few, many] = [FEW, MANY].map(handed_out);
        let found = format!("{JOBS} take {few:?} with {FEW} takes waiting, {many:?} with {MANY}");
        if many <= few * MOST { Ok(found) } else { Err(found) }
    });
}

/// How long it takes to publish jobs and to hand each of them to the next of so many that wait.
fn handed_out(waiting: u64) -> Duration {
    let queue: QueueName = "waited-for".parse().expect("a name");
    let mut bed = Bed::new();
    for token in 0..waiting + JOBS {
        let take = Take { queues: vec![queue.clone()], count: 1, lease_ms: 30_000, wait_ms: WAIT_MS };
        bed.engine.take(NOW, Token(token), take).expect("room for a take");
    }
    assert_eq!(bed.go(), 0);
    let begun = Instant::now();
    for job in 0..JOBS {
        let id: JobId = format!("job-{job}").parse().expect("an id");
        let new = NewJob::new(queue.clone(), id, Bytes::from_static(b"a body"));
        bed.engine.publish(NOW, Token(u64::MAX - job), new).expect("room for a job");
        assert_eq!(bed.go(), 1, "job {job} is handed out");
    }
    begun.elapsed()
}

/// An engine on a store in memory, while time stands still.
struct Bed {
    engine: Engine,
    store: Store,
}

impl Bed {
    fn new() -> Bed {
        let identity = Identity(7);
        let config = Config { pending_requests: 20_000, ..Config::default() };
        let mut engine = Engine::new(config, identity, NOW).expect("a config");
        let mut store = Store::new(Shards::default());
        store.subscribe(identity);
        store.subscribe_head(Shard(0), identity);
        engine.handle_wakeup(NOW, Wakeup::Subscribed);
        Bed { engine, store }
    }

    /// Goes on until nothing happens any more; how many jobs were handed out.
    fn go(&mut self) -> usize {
        let mut jobs = 0;
        loop {
            while let Some(transmit) = self.engine.poll_transmit(Credit::UNLIMITED) {
                let answer = |command| self.store.execute(START, command);
                let replies: Vec<_> = transmit.commands.iter().map(answer).collect();
                let ticket = transmit.ticket;
                self.engine.handle_replies(NOW, ticket, replies);
            }
            while let Some(event) = self.engine.poll_event() {
                if let Event::Answered { answer: Ok(Answer::Taken(taken)), .. } = event {
                    jobs += taken.len();
                }
            }
            let Some(notice) = self.store.poll_wakeup() else { return jobs };
            self.engine.handle_wakeup(NOW, notice.wakeup);
        }
    }
}
