//! Engines over one store, whose answers and clock a test changes.

use bytes::Bytes;
use delayline_core::{
    Answer, Command, Config, Credit, Due, Engine, Event, Fault, Identity, Millis, NewJob, Pumping, QueueName,
    Refusal, Reply, Shards, Subscription, Token, UnixMicros, Wakeup,
};
use delayline_embedded::Store;

const EPOCH_US: i64 = 1_763_700_000_000_000;

/// What answers instead of the store, if anything.
pub(crate) type Instead = Box<dyn FnMut(&Command) -> Option<Reply>>;

pub(crate) struct Bed {
    pub(crate) store: Store,
    pub(crate) now: Millis,
    /// By how much Redis's clock was set forward.
    pub(crate) ahead_ms: i64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) instead: Instead,
    /// Whether requests get nowhere, and no answer comes.
    pub(crate) silent: bool,
}

pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) is_dead: bool,
    /// What its engine told, and when.
    pub(crate) told: Vec<(Millis, Event)>,
    /// The commands of each round trip.
    pub(crate) trips: Vec<(Millis, Vec<Command>)>,
}

pub(crate) fn queue(name: &str) -> QueueName {
    name.parse().expect("a name")
}

pub(crate) fn shards(count: u16) -> Shards {
    Shards::new(count).expect("a number of shards")
}

/// One that runs jobs of a queue.
pub(crate) fn worker(name: &str) -> Config {
    let subscription = Subscription { queue: queue(name), weight: 1, max: 4 };
    Config { subscriptions: vec![subscription], slots: 4, pump: Pumping::Always, ..Config::default() }
}

/// There is no connection.
pub(crate) fn away() -> Instead {
    Box::new(|_| Some(Reply::Refused(Refusal::NotConnected)))
}

impl Bed {
    pub(crate) fn new(configs: impl IntoIterator<Item = Config>) -> Bed {
        let configs: Vec<Config> = configs.into_iter().collect();
        let mut bed = Bed {
            store: Store::new(configs.first().map_or_else(Shards::default, |config| config.shards)),
            now: Millis(1_000),
            ahead_ms: 0,
            nodes: Vec::new(),
            instead: Box::new(|_| None),
            silent: false,
        };
        for config in configs {
            bed.start(config);
        }
        bed
    }

    /// Starts an engine, and answers its place.
    pub(crate) fn start(&mut self, config: Config) -> usize {
        let identity = Identity(self.nodes.len() as u64 + 1);
        let engine = Engine::new(config, identity, self.now).expect("a config");
        self.nodes.push(Node { engine, is_dead: false, told: Vec::new(), trips: Vec::new() });
        self.subscribe(identity);
        let now = self.now;
        self.nodes.last_mut().expect("a node").engine.handle_wakeup(now, Wakeup::Subscribed);
        self.nodes.len() - 1
    }

    fn subscribe(&mut self, identity: Identity) {
        self.store.subscribe(identity);
        for shard in shards(4).iter() {
            self.store.subscribe_head(shard, identity);
        }
    }

    /// Loses all that the store holds, as FLUSHALL does: who listens still does.
    pub(crate) fn flush(&mut self, shards: Shards) {
        self.store = Store::new(shards);
        for identity in 1..=self.nodes.len() as u64 {
            self.subscribe(Identity(identity));
        }
    }

    pub(crate) fn redis_time(&self) -> UnixMicros {
        let us = EPOCH_US + self.now.0.cast_signed() * 1_000 + self.ahead_ms * 1_000;
        UnixMicros(us.cast_unsigned())
    }

    /// Carries a command of somebody else out.
    pub(crate) fn execute(&mut self, command: &Command) -> Reply {
        let reply = self.store.execute(self.redis_time(), command);
        self.notify();
        reply
    }

    pub(crate) fn publish(&mut self, node: usize, token: u64, name: &str, delay_ms: u64) {
        let mut job = NewJob::new(queue(name), format!("job-{token}").parse().expect("an id"), Bytes::new());
        job.due = Due::After { ms: delay_ms };
        self.publish_job(node, token, job);
    }

    pub(crate) fn publish_job(&mut self, node: usize, token: u64, job: NewJob) {
        let now = self.now;
        self.nodes[node].engine.publish(now, Token(token), job).expect("room");
    }

    pub(crate) fn engine(&mut self, node: usize) -> &mut Engine {
        &mut self.nodes[node].engine
    }

    /// What a token was answered, and how long after `since`.
    pub(crate) fn answer(&self, node: usize, token: u64) -> Option<(Millis, Result<Answer, Fault>)> {
        self.nodes[node].told.iter().find_map(|(at, event)| match event {
            Event::Answered { token: answered, answer } if answered.0 == token => Some((*at, answer.clone())),
            _ => None,
        })
    }

    /// When jobs were run, and of which id.
    pub(crate) fn runs(&self, node: usize) -> Vec<(Millis, String)> {
        let runs = self.nodes[node].told.iter().filter_map(|(at, event)| match event {
            Event::Run(job) => Some((*at, job.lease.id.to_string())),
            _ => None,
        });
        runs.collect()
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        loop {
            self.settle();
            let timeouts = self.nodes.iter().filter(|node| !node.is_dead);
            let next = timeouts.filter_map(|node| node.engine.poll_timeout()).map(|(at, _)| at).min();
            match next.filter(|at| *at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.timeouts();
        }
        self.now = end;
        self.timeouts();
        self.settle();
    }

    fn timeouts(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| !node.is_dead) {
            node.engine.handle_timeout(self.now);
        }
    }

    /// Until nobody has anything to do at this time.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut moved = false;
            for node in 0..self.nodes.len() {
                moved |= !self.nodes[node].is_dead && self.turn(node);
            }
            if !moved {
                return;
            }
        }
        panic!("the engines go on for ever at {}", self.now.0);
    }

    fn turn(&mut self, node: usize) -> bool {
        let (now, time) = (self.now, self.redis_time());
        let Node { engine, told, trips, .. } = &mut self.nodes[node];
        let mut moved = false;
        while let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) {
            moved = true;
            let ticket = transmit.ticket;
            trips.push((now, transmit.commands.to_vec()));
            if self.silent {
                continue;
            }
            let answer = |command: &Command| {
                (self.instead)(command).unwrap_or_else(|| self.store.execute(time, command))
            };
            let replies: Vec<Reply> = transmit.commands.iter().map(answer).collect();
            engine.handle_replies(now, ticket, replies);
        }
        while let Some(event) = engine.poll_event() {
            moved = true;
            told.push((now, event));
        }
        moved | self.notify()
    }

    fn notify(&mut self) -> bool {
        let mut moved = false;
        while let Some(notice) = self.store.poll_wakeup() {
            let place = usize::try_from(notice.to.0 - 1).expect("a place");
            if let Some(node) = self.nodes.get_mut(place).filter(|node| !node.is_dead) {
                node.engine.handle_wakeup(self.now, notice.wakeup);
                moved = true;
            }
        }
        moved
    }
}
