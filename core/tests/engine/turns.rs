//! Whose turn it is, where many queues want the same slots.

use std::collections::BTreeMap;

use delayline_core::wire::LAYOUT;
use delayline_core::{
    Command, Config, Credit, Engine, Event, Fence, Grant, Held, Identity, Millis, QueueName, Reply,
    SettleOutcome, Subscription, UnixMicros, UnixMs, Verdict, Wakeup,
};

use crate::grant::{START_MS, grant};

fn name(number: usize) -> QueueName {
    format!("q{number}").parse().unwrap()
}

/// A worker and its queues: round trips take a millisecond, and so long every job.
struct Rig {
    engine: Engine,
    now: u64,
    job_ms: u64,
    left: BTreeMap<QueueName, u64>,
    air: Vec<(u64, delayline_core::Ticket, Vec<Command>)>,
    running: Vec<(u64, Held)>,
    granted: u64,
    /// How many jobs each reserve brought, and when.
    reserves: Vec<(u64, QueueName, usize)>,
}

impl Rig {
    fn new(queues: usize, jobs: u64, job_ms: u64, weight: impl Fn(usize) -> u16) -> Rig {
        let subscription = |number| Subscription { queue: name(number), weight: weight(number), max: 10_000 };
        let subscriptions = (0..queues).map(subscription).collect();
        let config = Config { subscriptions, slots: 100, ..Config::default() };
        let mut engine = Engine::new(config, Identity(7), Millis(0)).unwrap();
        engine.handle_wakeup(Millis(0), Wakeup::Subscribed);
        Rig {
            engine,
            now: 0,
            job_ms,
            left: (0..queues).map(|number| (name(number), jobs)).collect(),
            air: Vec::new(),
            running: Vec::new(),
            granted: 0,
            reserves: Vec::new(),
        }
    }

    fn reply(&mut self, command: &Command) -> Reply {
        let time = UnixMicros((START_MS + self.now) * 1_000);
        match command {
            Command::Reserve { queue, count, .. } => {
                let left = self.left.get_mut(queue).unwrap();
                let jobs: Vec<Grant> = (0..(*left).min(u64::from(*count)))
                    .map(|n| grant(&format!("job-{}", self.granted + n)))
                    .collect();
                *left -= jobs.len() as u64;
                self.granted += jobs.len() as u64;
                self.reserves.push((self.now, queue.clone(), jobs.len()));
                Reply::Granted {
                    time,
                    fence: Fence(7),
                    lease_end: UnixMs(START_MS + self.now + 30_000),
                    backoff: None,
                    jobs,
                    next: None,
                    more: *left > 0,
                    open: true,
                }
            }
            Command::Settle { leases, .. } => {
                Reply::Settled { time: None, outcomes: vec![SettleOutcome::Done; leases.len()] }
            }
            Command::Open { shards } => {
                Reply::Opened { time, layout: LAYOUT, shards: *shards, born: UnixMicros(START_MS * 1_000) }
            }
            other => panic!("{other:?}"),
        }
    }

    fn poll(&mut self) {
        loop {
            let mut moved = false;
            while let Some(transmit) = self.engine.poll_transmit(Credit::UNLIMITED) {
                self.air.push((self.now + 1, transmit.ticket, transmit.commands.to_vec()));
                moved = true;
            }
            while let Some(event) = self.engine.poll_event() {
                if let Event::Run(job) = event {
                    self.running.push((self.now + self.job_ms, job.held.unwrap()));
                }
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    /// Lets a millisecond pass.
    fn step(&mut self) {
        self.poll();
        self.now += 1;
        let (landing, air) = std::mem::take(&mut self.air).into_iter().partition(|(at, ..)| *at <= self.now);
        self.air = air;
        let landing: Vec<_> = landing;
        for (_, ticket, commands) in landing {
            let replies: Vec<Reply> = commands.iter().map(|command| self.reply(command)).collect();
            self.engine.handle_replies(Millis(self.now), ticket, replies);
        }
        let now = self.now;
        for (_, held) in self.running.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            self.engine.settle(Millis(now), held, Verdict::Ack);
        }
        self.engine.handle_timeout(Millis(now));
        assert!(self.engine.held() <= 100, "never more than slots");
    }

    fn jobs_of(&self, queue: &QueueName) -> usize {
        self.reserves.iter().filter(|(_, of, _)| of == queue).map(|(.., jobs)| jobs).sum()
    }
}

#[test]
fn many_queues_are_asked_in_batches_where_jobs_end_fast() {
    for queues in [100, 1_000] {
        let mut rig = Rig::new(queues, 50_000 / queues as u64, 1, |_| 1);
        while rig.granted < 50_000 {
            rig.step();
            assert!(rig.now < 5_000, "{queues} queues: {} jobs after 5 s", rig.granted);
        }
        let reserves = rig.reserves.len();
        assert!(reserves < 50_000 / 15, "{queues} queues: {reserves} reserves for 50,000 jobs");
    }
}

#[test]
fn all_queues_come_round_in_a_bounded_time() {
    let mut rig = Rig::new(1_000, 1_000_000, 1, |_| 1);
    (0..6_000).for_each(|_| rig.step());
    for number in 0..1_000 {
        let queue = name(number);
        let turns: Vec<u64> =
            rig.reserves.iter().filter(|(_, of, _)| *of == queue).map(|(at, ..)| *at).collect();
        let gaps = turns.windows(2).map(|pair| pair[1] - pair[0]);
        let longest = gaps.chain(turns.first().copied()).chain([6_000 - turns.last().unwrap()]).max();
        assert!(longest < Some(2_500), "{queue} waited {longest:?} ms");
    }
}

#[test]
fn where_jobs_take_long_no_queue_has_all_slots() {
    let mut rig = Rig::new(100, 1_000, 1_000, |_| 1);
    (0..900).for_each(|_| rig.step());
    let served = (0..100).filter(|number| rig.jobs_of(&name(*number)) > 0).count();
    assert_eq!((served, rig.granted), (100, 100));
}

#[test]
fn a_queue_of_few_jobs_does_not_wait_for_those_of_many() {
    let mut rig = Rig::new(100, 1_000_000, 1, |_| 1);
    let small = name(7);
    rig.left.insert(small.clone(), 0);
    (0..500).for_each(|_| rig.step());
    rig.left.insert(small.clone(), 1);
    let (woken, before) = (rig.now, rig.jobs_of(&small));
    rig.engine.handle_wakeup(Millis(woken), Wakeup::Ready(small.clone()));
    while rig.jobs_of(&small) == before {
        rig.step();
        assert!(rig.now < woken + 30, "it waits");
    }
}

#[test]
fn weights_are_kept() {
    let mut rig = Rig::new(10, 1_000_000, 1, |number| if number == 0 { 5 } else { 1 });
    (0..5_000).for_each(|_| rig.step());
    let (heavy, light) = (rig.jobs_of(&name(0)), rig.jobs_of(&name(1)));
    assert!((heavy * 10).abs_diff(light * 50) < heavy * 2, "{heavy} and {light}");
}
