//! What waits for company, and for how long.

use delayline_core::wire::LAYOUT;
use delayline_core::{
    Ask, Command, Config, Credit, Due, Engine, Event, Fence, Grant, Held, Identity, Lease, Millis, NewJob,
    Pacing, QueueName, Reply, Request, SettleOutcome, Subscription, Ticket, Token, UnixMicros, UnixMs,
    Verdict, Wakeup,
};

use crate::grant::{START_MS, grant};

const GAP_MS: u64 = 5;

fn queue() -> QueueName {
    "orders".parse().unwrap()
}

/// An engine whose every round trip is answered at once.
struct Rig {
    engine: Engine,
    now: u64,
    due: u64,
    next: Option<UnixMs>,
    published: u64,
    held: Vec<Held>,
}

impl Rig {
    fn new(pacing: Pacing) -> Rig {
        let subscriptions = vec![Subscription { queue: queue(), weight: 1, max: 100 }];
        let config = Config { subscriptions, slots: 100, pacing, gap_ms: GAP_MS, ..Config::default() };
        let mut engine = Engine::new(config, Identity(7), Millis(0)).unwrap();
        engine.handle_wakeup(Millis(0), Wakeup::Subscribed);
        let next = Some(UnixMs(START_MS + 86_400_000));
        let mut rig = Rig { engine, now: 0, due: 0, next, published: 0, held: Vec::new() };
        rig.run();
        rig.now = 1_000;
        rig
    }

    /// The round trips that are made now, by the names of their commands.
    fn run(&mut self) -> Vec<Vec<&'static str>> {
        let mut trips = Vec::new();
        loop {
            while let Some(event) = self.engine.poll_event() {
                if let Event::Run(job) = event {
                    self.held.extend(job.held);
                }
            }
            let Some(transmit) = self.engine.poll_transmit(Credit::UNLIMITED) else { return trips };
            let (ticket, commands) = (transmit.ticket, transmit.commands.to_vec());
            let named = commands.iter().map(name).collect();
            trips.push(named);
            self.answer(ticket, &commands);
        }
    }

    fn answer(&mut self, ticket: Ticket, commands: &[Command]) {
        let replies: Vec<Reply> = commands.iter().map(|command| self.reply(command)).collect();
        self.engine.handle_replies(Millis(self.now), ticket, replies);
    }

    fn reply(&mut self, command: &Command) -> Reply {
        let time = UnixMicros((START_MS + self.now) * 1_000);
        match command {
            Command::Reserve { count, .. } => {
                let jobs: Vec<Grant> =
                    (0..self.due.min(u64::from(*count))).map(|n| grant(&format!("job-{n}"))).collect();
                self.due -= jobs.len() as u64;
                Reply::Granted {
                    time,
                    fence: Fence(7),
                    lease_end: UnixMs(START_MS + self.now + 30_000),
                    backoff: None,
                    jobs,
                    next: self.next,
                    more: self.due > 0,
                    open: true,
                }
            }
            Command::Settle { leases, .. } => {
                Reply::Settled { time: None, outcomes: vec![SettleOutcome::Done; leases.len()] }
            }
            Command::Publish { jobs, .. } => {
                let outcomes = vec![delayline_core::PublishOutcome::New; jobs.len()];
                Reply::Published { time, since: time, outcomes, full: None }
            }
            Command::Open { shards } => {
                Reply::Opened { time, layout: LAYOUT, shards: *shards, born: UnixMicros(START_MS * 1_000) }
            }
            other => panic!("{other:?}"),
        }
    }

    /// `jobs` are due, and the engine hears of it.
    fn wake(&mut self, jobs: u64) -> Vec<Vec<&'static str>> {
        self.due += jobs;
        self.engine.handle_wakeup(Millis(self.now), Wakeup::Ready(queue()));
        self.run()
    }

    fn ack(&mut self) -> Vec<Vec<&'static str>> {
        let held = self.held.pop().expect("a job");
        self.engine.settle(Millis(self.now), held, Verdict::Ack);
        self.run()
    }

    fn publish(&mut self) -> Vec<Vec<&'static str>> {
        let id = format!("new-{}", self.published).parse().unwrap();
        self.published += 1;
        let job = NewJob { due: Due::After { ms: 1_000 }, ..NewJob::new(queue(), id, bytes::Bytes::new()) };
        self.engine.publish(Millis(self.now), Token(self.published), job).unwrap();
        self.run()
    }

    fn advance(&mut self, ms: u64) -> Vec<Vec<&'static str>> {
        let to = self.now + ms;
        let mut trips = Vec::new();
        while let Some((at, _)) = self.engine.poll_timeout().filter(|(at, _)| at.0 <= to) {
            self.now = at.0.max(self.now);
            self.engine.handle_timeout(Millis(self.now));
            trips.extend(self.run());
        }
        self.now = to;
        trips
    }
}

fn name(command: &Command) -> &'static str {
    match command {
        Command::Reserve { .. } => "reserve",
        Command::Settle { tidy: true, .. } => "settle, tidy",
        Command::Settle { .. } => "settle",
        Command::Publish { .. } => "publish",
        Command::Open { .. } => "open",
        _ => "other",
    }
}

const NOTHING: [Vec<&str>; 0] = [];

#[test]
fn what_comes_after_a_pause_leaves_at_once() {
    for pacing in [Pacing::Punctual, Pacing::Thrifty] {
        let mut rig = Rig::new(pacing);
        assert_eq!(rig.publish(), [["publish"]]);
        rig.advance(100);
        assert_eq!(rig.wake(1), [["reserve"]]);
        rig.advance(100);
        assert_eq!(rig.ack(), [["settle, tidy"]]);
    }
}

#[test]
fn a_second_ack_waits_for_the_gap_and_no_longer() {
    let mut rig = Rig::new(Pacing::Punctual);
    rig.wake(3);
    assert_eq!(rig.ack().len(), 1);
    assert_eq!(rig.ack(), NOTHING);
    assert_eq!(rig.advance(GAP_MS - 1), NOTHING);
    assert_eq!(rig.advance(1), [["settle"]]);
}

#[test]
fn an_ack_that_waits_goes_before_the_next_reserve_in_one_round_trip() {
    let mut rig = Rig::new(Pacing::Punctual);
    rig.wake(2);
    rig.ack();
    assert_eq!(rig.ack(), NOTHING);
    assert_eq!(rig.wake(1), [["settle", "reserve"]]);
}

#[test]
fn an_ack_does_not_go_along_while_more_jobs_of_its_queue_run_than_are_done() {
    let mut rig = Rig::new(Pacing::Punctual);
    rig.wake(10);
    rig.ack();
    assert_eq!(rig.ack(), NOTHING);
    assert_eq!(rig.wake(1), [["reserve"]]);
    for _ in 0..4 {
        assert_eq!(rig.ack(), NOTHING);
    }
    assert_eq!(rig.wake(1), [["settle", "reserve"]]);
}

#[test]
fn verdicts_that_somebody_waits_for_or_that_make_jobs_due_leave_at_once() {
    let mut rig = Rig::new(Pacing::Punctual);
    rig.wake(4);
    rig.ack();
    let held = rig.held.pop().unwrap();
    rig.engine.settle(Millis(rig.now), held, Verdict::Release);
    assert_eq!(rig.run(), [["settle"]]);
    let lease = Lease { queue: queue(), id: "foreign".parse().unwrap(), fence: Fence(1), retry_ms: 0 };
    let ask = Ask::Settle { lease, verdict: Verdict::Ack };
    rig.engine.request(Millis(rig.now), Token(99), Request { ask, timeout_ms: 1_000 }).unwrap();
    assert_eq!(rig.run(), [["settle"]]);
}

#[test]
fn who_drains_waits_for_nothing() {
    let mut rig = Rig::new(Pacing::Punctual);
    rig.wake(2);
    rig.ack();
    assert_eq!(rig.ack(), NOTHING);
    rig.engine.drain(Millis(rig.now));
    assert_eq!(rig.run()[0][0], "settle");
}

#[test]
fn the_punctual_ask_and_publish_at_once() {
    let mut rig = Rig::new(Pacing::Punctual);
    for _ in 0..3 {
        assert_eq!(rig.publish(), [["publish"]]);
        assert_eq!(rig.wake(1), [["reserve"]]);
    }
}

#[test]
fn the_thrifty_send_what_came_within_a_gap_together() {
    let mut rig = Rig::new(Pacing::Thrifty);
    rig.wake(2);
    for _ in 0..2 {
        assert_eq!(rig.publish(), NOTHING);
        assert_eq!(rig.wake(1), NOTHING);
        assert_eq!(rig.ack(), NOTHING);
    }
    assert_eq!(rig.advance(GAP_MS - 1), NOTHING);
    assert_eq!(rig.advance(1), [["settle", "publish", "reserve"]]);
}

#[test]
fn a_full_batch_waits_for_nothing() {
    let mut rig = Rig::new(Pacing::Thrifty);
    rig.publish();
    for _ in 0..Command::JOBS_MAX - 1 {
        assert_eq!(rig.publish(), NOTHING);
    }
    assert_eq!(rig.publish(), [["publish"]]);
    rig.advance(100);
    let trips = rig.wake(250);
    assert_eq!(trips, [["reserve"]], "100 slots");
    assert_eq!(rig.ack(), [["reserve"]], "more jobs are due");
}

#[test]
fn a_queue_is_not_tidied_where_the_next_event_is_near() {
    let mut rig = Rig::new(Pacing::Punctual);
    rig.next = Some(UnixMs(START_MS + rig.now + 300));
    rig.wake(1);
    assert_eq!(rig.ack(), [["settle"]]);
}
