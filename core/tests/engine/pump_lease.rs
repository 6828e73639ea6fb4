//! Who holds a shard's pump lease, and for how long.

use delayline_core::wire::LAYOUT;
use delayline_core::{
    Command, Config, Credit, Engine, Fence, Identity, Millis, Pumping, QueueName, Reply, Shard, Take, Token,
    UnixMicros, UnixMs, Wakeup,
};

use crate::grant::START_MS;

const LEASE_MS: u64 = 30_000;

/// An engine, and a store where it alone stands for the lease.
struct Rig {
    engine: Engine,
    now: u64,
    /// Until when the lease is held.
    lease: u64,
    /// What was sent.
    sent: Vec<Command>,
}

fn queue() -> QueueName {
    "orders".parse().unwrap()
}

impl Rig {
    fn new() -> Rig {
        let config = Config { pump: Pumping::WhileTaking, ..Config::default() };
        let engine = Engine::new(config, Identity(7), Millis(0)).unwrap();
        Rig { engine, now: 0, lease: 0, sent: Vec::new() }
    }

    fn take(&mut self, token: u64) {
        let take = Take { queues: vec![queue()], count: 1, lease_ms: LEASE_MS, wait_ms: 300_000 };
        self.engine.take(Millis(self.now), Token(token), take).unwrap();
        self.run();
    }

    fn run(&mut self) {
        while let Some(transmit) = self.engine.poll_transmit(Credit::UNLIMITED) {
            let (ticket, commands) = (transmit.ticket, transmit.commands.to_vec());
            let replies: Vec<Reply> = commands.iter().map(|command| self.reply(command)).collect();
            self.sent.extend(commands);
            self.engine.handle_replies(Millis(self.now), ticket, replies);
        }
    }

    fn reply(&mut self, command: &Command) -> Reply {
        let now_ms = START_MS + self.now;
        let time = UnixMicros(now_ms * 1_000);
        match command {
            Command::Peek { engine, lease_ms, .. } => {
                let half = *lease_ms > 0 && self.lease.saturating_sub(self.now) <= lease_ms / 2;
                if half || *lease_ms == 0 {
                    self.lease = self.now + lease_ms;
                }
                let holder = (self.lease > self.now).then_some((*engine, UnixMs(START_MS + self.lease)));
                let agenda = vec![(queue(), UnixMs(now_ms + 5_000))];
                Reply::Peeked { time, holder, agenda, firsts: Vec::new() }
            }
            Command::Reserve { .. } => Reply::Granted {
                time,
                fence: Fence(7),
                lease_end: UnixMs(now_ms + LEASE_MS),
                backoff: None,
                jobs: Vec::new(),
                next: None,
                more: false,
                open: true,
            },
            Command::Tend { .. } => Reply::Tended {
                time,
                ended: 0,
                expired: 0,
                purged: 0,
                forwarded: 0,
                next: None,
                more: false,
                forward: None,
            },
            Command::Open { shards } => {
                Reply::Opened { time, layout: LAYOUT, shards: *shards, born: UnixMicros(START_MS * 1_000) }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Lets time pass until then, timer by timer.
    fn advance(&mut self, to: u64) {
        while let Some((at, _)) = self.engine.poll_timeout().filter(|(at, _)| at.0 <= to) {
            self.now = at.0.max(self.now);
            self.engine.handle_timeout(at);
            self.run();
        }
        self.now = to;
    }

    /// The lengths of the leases that were asked for; 0 gives one up.
    fn peeks(&mut self) -> Vec<u64> {
        let peek = |command| match command {
            Command::Peek { lease_ms, .. } => Some(lease_ms),
            _ => None,
        };
        self.sent.drain(..).filter_map(peek).collect()
    }
}

/// A take that waited, and waits no longer.
fn taken(hears: bool) -> Rig {
    let mut rig = Rig::new();
    if hears {
        rig.engine.handle_wakeup(Millis(0), Wakeup::Subscribed);
    }
    rig.take(1);
    assert_eq!(rig.peeks(), [LEASE_MS]);
    rig.engine.forget(Millis(0), Token(1));
    rig.run();
    rig
}

#[test]
fn who_took_a_job_keeps_the_lease_until_it_ends() {
    let mut rig = taken(true);
    assert_eq!(rig.peeks(), [], "everybody else would look for it");
    rig.advance(6_000);
    assert!(rig.sent.iter().any(|sent| matches!(sent, Command::Tend { .. })), "what is due is tended");
    rig.peeks();
    rig.advance(4 * LEASE_MS);
    assert!(rig.peeks().len() <= 1, "it is not renewed for ever");
    assert!(rig.engine.is_idle());
}

#[test]
fn who_keeps_the_lease_hears_of_earlier_heads() {
    let mut rig = taken(true);
    rig.peeks();
    rig.engine.handle_wakeup(Millis(0), Wakeup::Head(Shard::default(), UnixMs(START_MS + 100)));
    rig.run();
    assert_eq!(rig.peeks(), [LEASE_MS]);
}

#[test]
fn who_takes_again_does_not_look_again() {
    let mut rig = taken(true);
    rig.peeks();
    rig.take(2);
    assert_eq!(rig.peeks(), []);
    rig.advance(LEASE_MS + 1);
    assert!(!rig.peeks().is_empty(), "the lease is renewed, or taken anew, before anything is late");
    assert!(rig.lease > rig.now);
}

#[test]
fn who_leaves_gives_the_lease_up() {
    let mut rig = taken(true);
    rig.peeks();
    rig.engine.drain(Millis(0));
    rig.run();
    assert_eq!(rig.peeks(), [0]);
    assert!(rig.engine.is_drained());
}

#[test]
fn who_hears_nothing_gives_the_lease_up_at_once() {
    assert_eq!(taken(false).peeks(), [0]);
}
