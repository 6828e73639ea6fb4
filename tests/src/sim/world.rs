mod application;
mod network;
mod oracles;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use delayline_core::wire::Form;
use delayline_core::{
    Ask, Command, Config, Credit, Engine, Held, Identity, Keyspace, Kind, Lease, Prefix, Reply, Shards,
    Ticket, Token, UnixMicros, Verdict, Wakeup,
};
use delayline_embedded::Store;

use super::faults::{Faults, Switches};
use super::model::{Model, Tally, Violation, ensure};
use super::node::Node;
use super::workload::{self, Act, Asked};
use crate::Random;

/// When a run begins, by Redis's clock.
pub(super) const EPOCH_MS: u64 = 1_760_000_000_000;
const SPAN_MS: u64 = 30_000;
const SETTLE_MS: u64 = 90_000;
const DRAIN_MS: u64 = 30_000;
const CHECK_EVERY: u64 = 64;
const SPIN_MAX: u32 = 200;
const LIMIT_STEPS: u64 = 2_000_000;

/// A run that went well.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Events carried out.
    pub steps: u64,
    /// A hash of everything that happened: the same seed gives the same.
    pub trace: u64,
    /// Virtual time passed, in milliseconds.
    pub virtual_ms: u64,
    /// What happened.
    pub tally: Tally,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed that does it again.
    pub seed: u64,
    /// When, in virtual milliseconds.
    pub at_ms: u64,
    /// Which promise.
    pub violation: Violation,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} at {} ms: {}", self.seed, self.at_ms, self.violation)?;
        write!(f, "replay: cargo run --release -p delayline-tests --bin sim -- --seed {} --trace", self.seed)
    }
}

/// What happens at some time.
#[derive(Clone, Debug)]
enum What {
    Timer(usize, u32),
    Arrive { node: usize, life: u32, ticket: Ticket, commands: Vec<Command>, forms: Vec<Form>, fate: Fate },
    Replies(usize, u32, Ticket, Vec<Reply>),
    Loss(usize, u32, Ticket),
    Notice(usize, u32, Wakeup),
    Hears(usize, u32),
    Done(usize, u32, Held, Verdict),
    Settle(usize, u32, Lease, Verdict),
    Forget(usize, u32, Token),
    Act(usize, Act),
    Crash(usize),
    Start(usize),
    Pause(usize, u64),
    Deafen(usize),
    Flush,
    Heal,
    Drain,
}

/// What becomes of a request that arrived.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered { after_us: u64 },
    Unanswered,
    Cut { after: usize },
}

struct World {
    now_us: u64,
    queue: BTreeMap<(u64, u64), What>,
    count: u64,
    steps: u64,
    trace: u64,
    store: Store,
    keys: Keyspace,
    scripts: BTreeSet<u8>,
    nodes: Vec<Node>,
    model: Model,
    faults: Faults,
    network: Random,
    chaos: Random,
    handlers: Random,
    identities: Random,
    live_identities: BTreeMap<Identity, usize>,
    print: bool,
    calm: bool,
}

/// Runs one seed.
///
/// # Errors
/// The first promise that was broken.
pub fn run(seed: u64, switches: Switches, print: bool) -> Result<Report, Box<Failure>> {
    let mut world = World::new(seed, switches, print);
    let result = world.play();
    let at_ms = world.now_us / 1000;
    match result {
        Ok(()) => {
            Ok(Report { steps: world.steps, trace: world.trace, virtual_ms: at_ms, tally: world.model.tally })
        }
        Err(violation) => Err(Box::new(Failure { seed, at_ms, violation })),
    }
}

impl World {
    fn new(seed: u64, switches: Switches, print: bool) -> World {
        let mut root = Random::new(seed);
        let mut stream = || Random::new(root.any());
        let (mut plan, network, mut chaos) = (stream(), stream(), stream());
        let shards = Shards::new(*plan.pick(&[1, 1, 2])).expect("a number of shards");
        let mut store = Store::new(shards);
        store.plant(switches.ignore_sessions.then_some(delayline_embedded::Bug::SessionIgnored));
        let faults = Faults::draw(&mut chaos);
        let mut world = World {
            now_us: 0,
            queue: BTreeMap::new(),
            count: 0,
            steps: 0,
            trace: seed,
            store,
            keys: Keyspace::new(&Prefix::default(), shards),
            scripts: BTreeSet::new(),
            nodes: Vec::new(),
            model: Model::default(),
            faults,
            network,
            chaos,
            handlers: stream(),
            identities: stream(),
            live_identities: BTreeMap::new(),
            print,
            calm: false,
        };
        world.plan(&mut plan, shards);
        world
    }

    fn plan(&mut self, plan: &mut Random, shards: Shards) {
        let nodes = plan.number(2..=5);
        for n in 0..nodes {
            let mut config = Config { shards, pump: workload::pumping(plan), ..Config::default() };
            if n == 0 || plan.percent(50) {
                config.subscriptions = workload::subscriptions(plan);
                config.slots = u16::try_from(plan.number(1..=12)).unwrap_or(1);
            }
            if n == 0 {
                config.pump = delayline_core::Pumping::Always;
                config.subscriptions = workload::queues()
                    .map(|queue| delayline_core::Subscription { queue, weight: 1, max: 100 })
                    .to_vec();
            }
            config.lease_ms = plan.number(1_000..=6_000);
            config.poll_ms = plan.number(500..=10_000);
            config.pump_lease_ms = plan.number(1_000..=10_000);
            config.flight_ms = plan.number(50..=2_000);
            config.reserve_max = u16::try_from(plan.number(1..=20)).unwrap_or(1);
            self.nodes.push(Node::new(config, plan.number(0..=1_000_000), plan.number(0..=90)));
            self.at(plan.number(0..=2_000_000), What::Start(usize::try_from(n).unwrap_or(0)));
        }
        for (at_ms, node, act) in workload::draw(plan, nodes, SPAN_MS) {
            self.at(at_ms * 1000, What::Act(node, act));
        }
        self.plan_chaos(nodes);
        self.at(SPAN_MS * 1000, What::Heal);
        self.at((SPAN_MS + SETTLE_MS) * 1000, What::Drain);
    }

    fn plan_chaos(&mut self, nodes: u64) {
        let span_us = SPAN_MS * 1000;
        let mut chaos = self.chaos.clone();
        let node = |chaos: &mut Random| usize::try_from(chaos.number(0..=nodes - 1)).unwrap_or(0);
        for _ in 0..self.faults.crashes {
            let (at, node) = (chaos.number(0..=span_us), node(&mut chaos));
            self.at(at, What::Crash(node));
            self.at(at + chaos.number(1_000..=5_000_000), What::Start(node));
        }
        for _ in 0..self.faults.pauses {
            let (at, node) = (chaos.number(0..=span_us), node(&mut chaos));
            self.at(at, What::Pause(node, chaos.number(500_000..=15_000_000)));
        }
        for _ in 0..self.faults.flushes {
            self.at(chaos.number(0..=span_us), What::Flush);
        }
        for _ in 0..self.faults.deaf {
            let (at, node) = (chaos.number(0..=span_us), node(&mut chaos));
            self.at(at, What::Deafen(node));
        }
        self.chaos = chaos;
    }

    fn at(&mut self, us: u64, what: What) {
        self.queue.insert((us.max(self.now_us), self.count), what);
        self.count += 1;
    }

    fn after(&mut self, us: u64, what: What) {
        self.at(self.now_us + us, what);
    }

    fn play(&mut self) -> Result<(), Violation> {
        let end_us = (SPAN_MS + SETTLE_MS + DRAIN_MS) * 1000;
        while let Some(((at, _), what)) = self.queue.pop_first() {
            if at > end_us {
                break;
            }
            ensure!(
                self.steps < LIMIT_STEPS,
                "an idle engine is idle",
                "{} steps by {} ms",
                self.steps,
                at / 1000
            );
            self.now_us = at;
            self.steps += 1;
            self.hash(&what);
            self.step(what)?;
            if self.steps.is_multiple_of(CHECK_EVERY) {
                self.check()?;
            }
        }
        self.now_us = end_us;
        self.check()?;
        self.check_end()
    }

    fn hash(&mut self, what: &What) {
        let text = format!("{} {what:?}", self.now_us);
        for byte in text.bytes() {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.print {
            println!("{}", text.chars().take(600).collect::<String>());
        }
    }

    fn redis_now(&self) -> UnixMicros {
        UnixMicros(EPOCH_MS * 1000 + self.now_us)
    }

    fn alive(&self, node: usize, life: u32) -> bool {
        self.nodes[node].engine.is_some() && self.nodes[node].life == life
    }

    fn step(&mut self, what: What) -> Result<(), Violation> {
        if let Some(node) = what.for_node() {
            let until = self.nodes[node].paused_until_us;
            if until > self.now_us {
                self.at(until, what);
                return Ok(());
            }
        }
        match what {
            What::Timer(node, life) if self.alive(node, life) => {
                self.nodes[node].armed_us = None;
                self.with(node, Engine::handle_timeout)
            }
            What::Replies(node, life, ticket, replies) if self.alive(node, life) => {
                self.with(node, |engine, now| engine.handle_replies(now, ticket, replies))
            }
            What::Loss(node, life, ticket) if self.alive(node, life) => {
                self.with(node, |engine, now| engine.handle_loss(now, ticket))
            }
            What::Notice(node, life, wakeup) if self.alive(node, life) => {
                self.with(node, |engine, now| engine.handle_wakeup(now, wakeup))
            }
            What::Done(node, life, held, verdict) if self.alive(node, life) => {
                self.with(node, |engine, now| engine.settle(now, held, verdict))
            }
            What::Settle(node, life, lease, verdict) if self.alive(node, life) => {
                let token = self.nodes[node].token();
                self.nodes[node].asked.insert(token, Asked::Settle);
                let request = workload::request(Ask::Settle { lease, verdict });
                self.with(node, |engine, now| {
                    let _ = engine.request(now, token, request);
                })
            }
            What::Forget(node, life, token) if self.alive(node, life) => {
                self.nodes[node].asked.remove(&token);
                self.with(node, |engine, now| engine.forget(now, token))
            }
            What::Hears(node, life) if self.alive(node, life) => self.hear(node),
            What::Arrive { node, life, ticket, commands, forms, fate } => {
                self.arrive(node, life, ticket, &commands, &forms, fate)
            }
            What::Act(node, act) if self.nodes[node].engine.is_some() => self.act(node, act),
            What::Crash(node) if !self.calm => {
                self.silence(node);
                self.nodes[node].crash();
                Ok(())
            }
            What::Start(node) if self.nodes[node].engine.is_none() => self.start(node),
            What::Pause(node, us) if !self.calm => {
                self.nodes[node].paused_until_us = self.now_us + us;
                Ok(())
            }
            What::Deafen(node) if self.nodes[node].hears => {
                self.silence(node);
                let (life, back) = (self.nodes[node].life, self.chaos.number(1_000..=3_000_000));
                self.after(back, What::Hears(node, life));
                self.with(node, |engine, now| engine.handle_wakeup(now, Wakeup::Unsubscribed))
            }
            What::Flush => {
                self.scripts.clear();
                Ok(())
            }
            What::Heal => self.heal(),
            What::Drain => {
                let violation = self.unfinished();
                (0..self.nodes.len()).try_for_each(|node| self.with(node, Engine::drain))?;
                violation
            }
            _ => Ok(()),
        }
    }

    fn start(&mut self, node: usize) -> Result<(), Violation> {
        let identity = Identity(self.identities.any());
        let now_us = self.now_us;
        self.nodes[node].start(identity, now_us);
        self.live_identities.insert(identity, node);
        let (life, delay) = (self.nodes[node].life, self.network.number(100..=50_000));
        self.after(delay, What::Hears(node, life));
        self.with(node, |_, _| ())
    }

    fn hear(&mut self, node: usize) -> Result<(), Violation> {
        if let Some(engine) = &self.nodes[node].engine {
            let identity = engine.identity();
            self.store.subscribe(identity);
            for shard in self.keys.shards().iter() {
                self.store.subscribe_head(shard, identity);
            }
            self.nodes[node].hears = true;
        }
        self.with(node, |engine, now| engine.handle_wakeup(now, Wakeup::Subscribed))
    }

    fn silence(&mut self, node: usize) {
        if let Some(engine) = &self.nodes[node].engine {
            self.store.unsubscribe(engine.identity());
        }
        self.nodes[node].hears = false;
    }

    fn heal(&mut self) -> Result<(), Violation> {
        self.calm = true;
        self.faults = Faults::NONE;
        for node in 0..self.nodes.len() {
            let until = self.nodes[node].paused_until_us.min(self.now_us + 100_000);
            self.nodes[node].paused_until_us = until;
            if self.nodes[node].engine.is_none() {
                self.start(node)?;
            } else if !self.nodes[node].hears {
                let life = self.nodes[node].life;
                self.at(until, What::Hears(node, life));
            }
        }
        for act in workload::resume_all() {
            self.after(20_000_000, What::Act(0, act));
        }
        Ok(())
    }

    /// Gives a node an input, then does all that it asks for.
    fn with(
        &mut self,
        node: usize,
        input: impl FnOnce(&mut Engine, delayline_core::Millis),
    ) -> Result<(), Violation> {
        let now = self.nodes[node].clock(self.now_us);
        let Some(mut engine) = self.nodes[node].engine.take() else { return Ok(()) };
        input(&mut engine, now);
        let mut spins = 0;
        let result = loop {
            let mut moved = false;
            while let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) {
                moved = true;
                let kinds: Vec<Kind> = transmit.kinds();
                ensure!(kinds.len() == transmit.forms.len(), "a transmit is whole", "{kinds:?}");
                let (ticket, commands, forms) =
                    (transmit.ticket, transmit.commands.to_vec(), transmit.forms.to_vec());
                self.send(node, ticket, commands, forms);
            }
            while let Some(event) = engine.poll_event() {
                moved = true;
                if let Err(violation) = self.handle_event(node, event) {
                    self.nodes[node].engine = Some(engine);
                    return Err(violation);
                }
            }
            spins += 1;
            if !moved {
                break match engine.poll_timeout() {
                    Some((at, _)) if at <= now && spins < SPIN_MAX => {
                        engine.handle_timeout(now);
                        continue;
                    }
                    other => other,
                };
            }
            ensure!(spins < SPIN_MAX, "poll_timeout makes progress", "node {node} spins at {now}");
        };
        if let Some((at, reason)) = result {
            ensure!(
                at > now,
                "poll_timeout makes progress",
                "node {node} wants {at} for {reason:?} at {now}"
            );
            let us = self.nodes[node].when(at, self.now_us);
            if self.nodes[node].armed_us.is_none_or(|armed| us < armed || armed < self.now_us) {
                self.nodes[node].armed_us = Some(us);
                let life = self.nodes[node].life;
                self.at(us, What::Timer(node, life));
            }
        }
        self.nodes[node].engine = Some(engine);
        Ok(())
    }
}

impl What {
    /// The node that must be running for this to happen.
    fn for_node(&self) -> Option<usize> {
        match self {
            What::Timer(node, _)
            | What::Replies(node, ..)
            | What::Loss(node, ..)
            | What::Notice(node, ..)
            | What::Hears(node, _)
            | What::Done(node, ..)
            | What::Settle(node, ..)
            | What::Forget(node, ..)
            | What::Act(node, _) => Some(*node),
            _ => None,
        }
    }
}
