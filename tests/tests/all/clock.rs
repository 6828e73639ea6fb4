//! Redis's clock is set back while the pump that holds the shard's lease dies: whoever stands by goes on within a pump lease.

use delayline_core::{
    Command, Config, Credit, Due, Engine, Forward, Identity, Millis, Pumping, QueueConfig, QueueName, Reply,
    Settlement, UnixMicros, Wakeup,
};
use delayline_embedded::Bug;

use crate::rig::{IntoReason, Rig, START, job};

const PUMP_LEASE_MS: u64 = 30_000;
const BACK_MS: u64 = 120_000;
const LONGEST_MS: u64 = 400_000;

/// Two pumps on a server whose clock is held. They hear no notification: those only make them faster.
struct Bed {
    rig: Rig,
    now: Millis,
    back_ms: u64,
    pumps: Vec<Engine>,
}

impl Bed {
    fn new(bug: Option<Bug>) -> Bed {
        let (mut rig, now) = (Rig::plain(), Millis(1_000));
        rig.store.plant(bug);
        let config = Config { pump: Pumping::Always, pump_lease_ms: PUMP_LEASE_MS, ..Config::default() };
        let pump = |identity| {
            let mut engine = Engine::new(config.clone(), Identity(identity), now).expect("a config");
            engine.handle_wakeup(now, Wakeup::Subscribed);
            engine
        };
        Bed { rig, now, back_ms: 0, pumps: vec![pump(1), pump(2)] }
    }

    fn run(&mut self, command: &Command) -> Reply {
        self.rig.now = UnixMicros(START + (1_000_000 + self.now.0 - self.back_ms) * 1_000);
        self.rig.run(command)
    }

    /// Until no pump has anything to do at this time.
    fn settle(&mut self) {
        let mut pumps = std::mem::take(&mut self.pumps);
        loop {
            let mut moved = false;
            for pump in &mut pumps {
                while let Some(transmit) = pump.poll_transmit(Credit::UNLIMITED) {
                    moved = true;
                    let (ticket, commands) = (transmit.ticket, transmit.commands.to_vec());
                    let replies: Vec<Reply> = commands.iter().map(|command| self.run(command)).collect();
                    pump.handle_replies(self.now, ticket, replies);
                }
                while pump.poll_event().is_some() {
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        self.pumps = pumps;
    }

    /// To the next time at which a pump wants something, and `end` at the latest.
    fn step(&mut self, end: Millis) {
        self.settle();
        let next = self.pumps.iter().filter_map(Engine::poll_timeout).map(|(at, _)| at).min();
        self.now = next.unwrap_or(end).clamp(self.now, end);
        for pump in &mut self.pumps {
            pump.handle_timeout(self.now);
        }
    }

    fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            self.step(end);
        }
        self.settle();
    }

    /// Who holds the shard's pump lease.
    fn holder(&mut self) -> Option<Identity> {
        let (shard, engine) = (delayline_core::Shard(0), Identity(9));
        let queues = Vec::new();
        match self.run(&Command::Peek { shard, engine, entries: 0, lease_ms: 1_000, stay: true, queues }) {
            Reply::Peeked { holder, .. } => holder.map(|(holder, _)| holder),
            other => panic!("{other:?}"),
        }
    }

    fn on(&mut self, queue: &str) -> QueueName {
        self.rig.queue = queue.parse().expect("a name");
        self.rig.queue.clone()
    }

    /// What is to happen to each queue a second from now, though nobody asks.
    fn prepare(&mut self) {
        let soon = Due::After { ms: 1_000 };
        self.on("forwarding");
        let forward = Some(Forward::List("work".to_owned()));
        let configure = self.rig.configure(QueueConfig { forward, ..QueueConfig::default() });
        self.run(&configure);
        let publish = self.rig.publish(vec![job("a", soon)]);
        self.run(&publish);

        self.on("expiring");
        let mut entry = job("a", Due::After { ms: 3_600_000 });
        entry.ttl_ms = 1_000;
        let publish = self.rig.publish(vec![entry]);
        self.run(&publish);

        self.on("retaining");
        let config = QueueConfig { retention_ms: Some(1_000), ..QueueConfig::default() };
        let configure = self.rig.configure(config);
        self.run(&configure);
        let (publish, reserve) =
            (self.rig.publish(vec![job("a", Due::After { ms: 0 })]), self.rig.reserve(1));
        self.run(&publish);
        let Reply::Granted { jobs, fence, .. } = self.run(&reserve) else { panic!("no grant") };
        let bury = Settlement::Bury { reason: "no".into_reason() };
        let bury = self.rig.settle(&jobs, fence, &bury, false);
        self.run(&bury);
    }

    /// How many jobs were forwarded, expired and purged, in the queues that are to do so.
    fn done(&mut self) -> [u64; 3] {
        let counters = ["forwarding", "expiring", "retaining"].map(|queue| {
            self.on(queue);
            let stats = self.rig.stats(0);
            match self.run(&stats) {
                Reply::Counted { stats, .. } => stats.counters,
                other => panic!("{other:?}"),
            }
        });
        [counters[0].forwarded, counters[1].expired, counters[2].purged]
    }
}

/// How long after the step all of it is done, in milliseconds.
fn recovery(bug: Option<Bug>) -> u64 {
    let mut bed = Bed::new(bug);
    bed.pass(40_000);
    let holder = bed.holder().expect("a pump stands for the lease");
    let dead = usize::from(holder != Identity(1));
    assert_eq!(holder, Identity(dead as u64 + 1));
    bed.pumps.remove(dead);
    bed.back_ms = BACK_MS;
    bed.prepare();
    let stepped = bed.now;
    while bed.done() != [1; 3] {
        assert!(bed.now.since(stepped) < LONGEST_MS, "{:?} are done", bed.done());
        bed.pass(500);
    }
    bed.now.since(stepped)
}

#[test]
fn a_pump_that_dies_as_the_clock_is_set_back_is_replaced_within_its_lease() {
    let ms = recovery(None);
    println!("forwarded, expired and purged {ms} ms after the clock was set back by {BACK_MS} ms");
    assert!(ms <= PUMP_LEASE_MS + 1_500, "it took {ms} ms");
}

#[test]
fn a_pump_lease_that_the_clock_made_longer_would_be_found() {
    let ms = recovery(Some(Bug::PumpLeaseUnbounded));
    assert!(ms > BACK_MS, "it took {ms} ms, though the lease that the dead pump left was respected");
}
