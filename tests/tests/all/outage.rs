//! A Redis that is away for an hour, or answers nonsense for a while, on a virtual clock.

use bytes::Bytes;
use delayline_core::{
    Answer, Command, Config, Credit, Due, Engine, Event, Fault, Identity, Millis, NewJob, Pumping, QueueName,
    Refusal, Reply, Shards, Subscription, Token, UnixMicros, Verdict,
};
use delayline_embedded::Store;

const EPOCH_US: u64 = 1_763_700_000_000_000;
const HOUR_MS: u64 = 3_600_000;

/// An engine and its store, with a connection that can be cut.
struct World {
    engine: Engine,
    store: Store,
    now: Millis,
    is_away: bool,
    /// How many of the next answers make no sense, as those of a script that fails.
    broken: u64,
    attempts: u64,
    answers: Vec<(Token, Millis, Result<Answer, Fault>)>,
    runs: Vec<(String, Millis)>,
}

impl World {
    fn new() -> World {
        let queue = "orders".parse().expect("a name");
        World::of(vec![Subscription { queue, weight: 1, max: 10 }])
    }

    fn of(subscriptions: Vec<Subscription>) -> World {
        let config = Config { subscriptions, slots: 10, pump: Pumping::Always, ..Config::default() };
        World {
            engine: Engine::new(config, Identity(7), Millis(0)).expect("a config"),
            store: Store::new(Shards::default()),
            now: Millis(0),
            is_away: false,
            broken: 0,
            attempts: 0,
            answers: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn publish(&mut self, token: u64, id: &str, delay_ms: u64) {
        let mut job =
            NewJob::new("orders".parse().expect("a name"), id.parse().expect("an id"), Bytes::new());
        job.due = Due::After { ms: delay_ms };
        self.engine.publish(self.now, Token(token), job).expect("room");
    }

    fn run_until(&mut self, end: Millis) {
        loop {
            while self.turn() {}
            match self.engine.poll_timeout().map(|(at, _)| at).filter(|at| *at <= end) {
                Some(at) => self.now = at,
                None => break,
            }
            self.engine.handle_timeout(self.now);
        }
        self.now = end;
        self.engine.handle_timeout(end);
        while self.turn() {}
    }

    fn turn(&mut self) -> bool {
        let World { engine, store, now, .. } = self;
        let mut moved = false;
        while let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) {
            moved = true;
            self.attempts += 1;
            let (ticket, time) = (transmit.ticket, UnixMicros(EPOCH_US + now.0 * 1000));
            let replies: Vec<Reply> = transmit
                .commands
                .iter()
                .map(|command| {
                    if self.is_away {
                        Reply::Refused(Refusal::NotConnected)
                    } else if self.broken > 0 {
                        self.broken -= 1;
                        Reply::Broken("ERR what script?".to_owned())
                    } else {
                        store.execute(time, command)
                    }
                })
                .collect();
            engine.handle_replies(*now, ticket, replies);
        }
        while let Some(event) = engine.poll_event() {
            moved = true;
            match event {
                Event::Answered { token, answer } => self.answers.push((token, *now, answer)),
                Event::Run(job) => {
                    self.runs.push((job.lease.id.to_string(), *now));
                    engine.settle(*now, job.held.expect("a managed job"), Verdict::Ack);
                }
                _ => {}
            }
        }
        moved
    }
}

#[test]
fn an_hour_without_redis_costs_its_jobs_a_few_seconds_after_it() {
    let mut world = World::new();
    world.publish(1, "before", HOUR_MS / 2);
    world.run_until(Millis(60_000));
    assert!(
        matches!(world.answers[..], [(Token(1), _, Ok(Answer::Published { .. }))]),
        "{:?}",
        world.answers
    );

    world.is_away = true;
    let (left, attempts) = (world.now, world.attempts);
    for minute in 0..60 {
        world.publish(100 + minute, &format!("during-{minute}"), 0);
        world.run_until(left + (minute + 1) * 60_000);
    }
    let refused = &world.answers[1..];
    assert_eq!(refused.len(), 60);
    for (minute, (_, at, answer)) in (0..).zip(refused) {
        assert_eq!(*answer, Err(Fault::NotSent(Some(Refusal::NotConnected))));
        assert_eq!(at.since(left + minute * 60_000), 30_000, "told when its time was over, not later");
    }
    assert_eq!(world.runs, []);
    let attempts = world.attempts - attempts;
    println!("{attempts} attempts to reach Redis in an hour without it");
    assert!((60..10_000).contains(&attempts), "{attempts}");

    world.is_away = false;
    let back = world.now;
    world.run_until(back + 10_000);
    let [(id, at)] = &world.runs[..] else { panic!("{:?}", world.runs) };
    assert_eq!(id, "before", "and none of those whose publishers were told that they were not sent");
    println!("the job that was due meanwhile ran {} ms after Redis was back", at.since(back));
    assert!(at.since(back) <= 5_000);
    world.publish(999, "after", 0);
    world.run_until(world.now + 31_000);
    assert_eq!(world.runs.len(), 2, "without notifications, a poll finds it");
}

#[test]
fn answers_that_make_no_sense_cost_a_job_as_many_seconds() {
    for broken in 1..=3 {
        let mut world = World::new();
        world.publish(1, "job", 20_000);
        world.run_until(Millis(19_999));
        world.broken = broken;
        world.run_until(Millis(20_500 + broken * 1_000));
        assert_eq!(world.broken, 0);
        assert_eq!(world.runs.len(), 1, "{broken} answers made no sense");
    }
}

#[test]
fn tending_that_fails_is_tried_again() {
    let mut world = World::of(Vec::new());
    let queue: QueueName = "orders".parse().expect("a name");
    let mut job = NewJob::new(queue.clone(), "job".parse().expect("an id"), Bytes::new());
    (job.due, job.ttl_ms) = (Due::After { ms: 19_000 }, Some(20_000));
    world.engine.publish(world.now, Token(1), job).expect("room");
    world.run_until(Millis(19_999));
    world.broken = 1;
    world.run_until(Millis(21_500));
    assert_eq!(world.broken, 0);
    let stats = Command::Stats { queue, hours: 0 };
    let reply = world.store.execute(UnixMicros(EPOCH_US + 21_500_000), &stats);
    assert!(
        matches!(reply, Reply::Counted { stats, .. } if stats.counters.expired == 1),
        "{:?}",
        world.answers
    );
}
