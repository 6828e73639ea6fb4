mod application;
mod blows;
mod edge;
mod liveness;
mod network;
mod oracles;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use delayline_core::story::{Line, Story as Teller};
use delayline_core::wire::Form;
use delayline_core::{
    Ask, Command, Credit, Engine, Held, Identity, Keyspace, Lease, Reply, Ticket, Token, UnixMicros, Verdict,
    Wakeup,
};

use super::marks::Marks;
use super::mistake::Slip;
use super::model::{Checked, Ledger, Violation, Witness, ensure};
use super::names;
use super::node::{Asked, Node};
use super::plan::{Act, Plan, QueuePlan, Rates, Strikes, Why};
use super::store::Store;
use super::story::{self, Story};
use crate::Random;

/// When a run begins, by Redis's clock.
pub(super) const EPOCH_MS: u64 = 1_760_000_000_000;
/// The whole key space is looked at so often; in one seed of [`THOROUGH`] after every step.
const CHECK_EVERY: u64 = 256;
const THOROUGH: u64 = 256;
const SPIN_MAX: u32 = 200;
const LIMIT_STEPS: u64 = 400_000;

/// A run that went well.
#[derive(Clone, Debug)]
pub struct Report {
    /// Events carried out.
    pub steps: u64,
    /// A hash of everything that happened: the same plan gives the same.
    pub trace: u64,
    /// Virtual time passed, in milliseconds.
    pub virtual_ms: u64,
    /// Jobs that were accepted.
    pub accepted: u64,
    /// The rare paths it reached.
    pub marks: Marks,
    /// How much of the time that settling may take it took, in percent.
    pub settled_percent: u64,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// When, in virtual milliseconds.
    pub at_ms: u64,
    /// Which promise.
    pub violation: Violation,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ms: {}", self.at_ms, self.violation)
    }
}

/// What happens at some time.
#[derive(Clone, Debug)]
enum What {
    Timer(usize, u32),
    Arrive(Box<Request>),
    Replies { node: usize, life: u32, connection: u32, ticket: Ticket, replies: Vec<Reply> },
    Loss(usize, u32, Ticket),
    Notice(usize, u32, Wakeup),
    Hears(usize, u32),
    Done(usize, u32, Held, Verdict),
    Settle(usize, u32, Box<(Lease, Verdict)>),
    Forget(usize, u32, Token),
    Act(Box<Act>),
    Start(usize),
    Strike(Strikes),
    Up,
    Heal,
    Settled,
    Purge,
    Drain,
    End,
}

/// A round trip on its way.
#[derive(Clone, Debug)]
struct Request {
    node: usize,
    life: u32,
    connection: u32,
    ticket: Ticket,
    /// Which primary the connection led to.
    term: u32,
    commands: Vec<Command>,
    forms: Vec<Form>,
    fate: Fate,
    copy: bool,
}

/// What becomes of a request that arrived.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered { after_us: u64 },
    Unanswered,
    Cut { after: usize },
}

/// Redis's process: whether it is there, what it knows beside its data, and its clock.
#[derive(Default)]
struct Redis {
    scripts: BTreeSet<u8>,
    down: bool,
    still_until_us: u64,
    refuses: Option<(Why, u64)>,
    /// Grows as a primary is demoted: its connections then lead to a replica.
    term: u32,
    ahead_us: i64,
    /// What was carried out, if a failover is to take some of it back.
    log: Option<Vec<(UnixMicros, Command, Reply)>>,
}

#[allow(clippy::struct_excessive_bools)] // none of them follows from another
pub(super) struct World<'a> {
    now_us: u64,
    agenda: BTreeMap<(u64, u64), What>,
    count: u64,
    steps: u64,
    trace: u64,
    store: &'a mut dyn Store,
    redis: Redis,
    keys: Keyspace,
    queues: Vec<QueuePlan>,
    nodes: Vec<Node>,
    ledger: Ledger,
    witness: Witness,
    marks: Marks,
    /// Round trips that Redis refused.
    refused: BTreeSet<(usize, u32, Ticket)>,
    rates: Rates,
    span_ms: u64,
    seed: u64,
    handlers: Random,
    identities: Random,
    live: BTreeMap<Identity, usize>,
    /// Versions of jobs published again.
    versions: u64,
    story: Option<Story>,
    slip: Option<Slip>,
    checks: u64,
    calm: bool,
    /// Whether nothing fails at all.
    clear: bool,
    /// Whether nothing fails but that answers are garbled.
    only_garbled: bool,
    /// Whether Redis's clock steps by minutes.
    stepped: bool,
    /// Whether clocks go evenly.
    steady: bool,
    /// Whether jobs need not wait for a poll.
    punctual: bool,
    /// Whether somebody emptied Redis, or took the deployment's config away.
    unopened: bool,
    /// Queues that many processes asked for one thing each.
    visited: BTreeSet<usize>,
    /// Whether somebody wrote over a value: then the agenda may be late, though no job is later than a poll.
    spoiled: bool,
    /// When the first node last had no slot free, or did not hear.
    busy_us: u64,
    last_act_us: u64,
    /// From when the time to settle counts.
    anchor_us: u64,
    /// When nothing was overdue last.
    tended_us: u64,
    settled_us: Option<u64>,
    drained_us: u64,
    bound_us: u64,
    /// How far clocks are set back, all in all: by so much later an engine looks again.
    set_back_ms: u64,
    over: bool,
}

impl<'a> World<'a> {
    pub(super) fn new(plan: &Plan, redis: &'a mut dyn Store, story: Option<Story>) -> World<'a> {
        let mut root = Random::new(plan.seed ^ 0x5ee_d0f_4e7);
        let mut stream = || Random::new(root.any());
        let (handlers, identities) = (stream(), stream());
        let nodes: Vec<Node> = plan.nodes.iter().map(|node| Node::new(node, plan.shards, stream())).collect();
        let fails_over =
            |strikes: &Strikes| matches!(strikes, Strikes::Failover { .. } | Strikes::Demote { .. });
        let uneven = |strikes: &Strikes| match strikes {
            Strikes::Jump { .. } | Strikes::RedisJump { .. } | Strikes::Step { .. } => true,
            Strikes::Suspend { counted, .. } => !counted,
            Strikes::Failover { skew_ms, .. } => *skew_ms != 0,
            _ => false,
        };
        let any = |what: &dyn Fn(&Strikes) -> bool| plan.blows.iter().any(|blow| what(&blow.what));
        let mut world = World {
            now_us: 0,
            agenda: BTreeMap::new(),
            count: 0,
            steps: 0,
            trace: plan.seed,
            store: redis,
            redis: Redis { log: any(&fails_over).then(Vec::new), ..Redis::default() },
            keys: names::keys(plan.shards),
            queues: plan.queues.clone(),
            nodes,
            ledger: Ledger::default(),
            witness: Witness::new(!any(&uneven)),
            marks: Marks::default(),
            refused: BTreeSet::new(),
            rates: plan.rates.clone(),
            span_ms: plan.span_ms,
            seed: plan.seed,
            handlers,
            identities,
            live: BTreeMap::new(),
            versions: 100,
            story,
            slip: None,
            checks: if plan.seed.is_multiple_of(THOROUGH) { 1 } else { CHECK_EVERY },
            calm: false,
            clear: plan.is_clear(),
            only_garbled: plan.is_only_garbled(),
            stepped: any(&|strikes| matches!(strikes, Strikes::Step { .. })),
            steady: !any(&uneven),
            punctual: plan.is_punctual(),
            unopened: false,
            visited: BTreeSet::new(),
            spoiled: false,
            busy_us: 0,
            last_act_us: plan.acts.iter().map(|act| act.at_ms * 1000).max().unwrap_or(0),
            anchor_us: 0,
            tended_us: 0,
            settled_us: None,
            drained_us: 0,
            bound_us: 0,
            set_back_ms: plan.set_back_ms(),
            over: false,
        };
        for (node, start) in plan.nodes.iter().enumerate() {
            world.at(start.start_ms * 1000, What::Start(node));
        }
        for act in &plan.acts {
            world.at(act.at_ms * 1000, What::Act(Box::new(act.clone())));
        }
        for blow in &plan.blows {
            world.at(blow.at_ms * 1000, What::Strike(blow.what.clone()));
        }
        world.at(plan.span_ms * 1000, What::Heal);
        world.bound_us = world.bound_us(world.set_back_ms);
        world
    }

    /// What drives the engines makes this mistake.
    pub(super) fn with_slip(self, slip: Option<Slip>) -> World<'a> {
        World { slip, ..self }
    }

    fn slips(&self, slip: Slip) -> bool {
        self.slip == Some(slip)
    }

    /// Plays the plan to its end.
    pub(super) fn play(mut self) -> Result<Report, Box<Failure>> {
        match self.play_on() {
            Ok(()) => Ok(Report {
                steps: self.steps,
                trace: self.trace,
                virtual_ms: self.now_us / 1000,
                accepted: self.ledger.accepted().count() as u64,
                settled_percent: self.settled_percent(),
                marks: self.marks,
            }),
            Err(violation) => Err(Box::new(Failure { at_ms: self.now_us / 1000, violation })),
        }
    }

    fn play_on(&mut self) -> Checked {
        while let Some(((at, _), what)) = self.agenda.pop_first() {
            let by_ms = at / 1000;
            ensure!(self.steps < LIMIT_STEPS, "an idle engine is idle", "{} steps by {by_ms} ms", self.steps);
            self.now_us = at;
            self.steps += 1;
            self.hash(&what);
            self.step(what)?;
            if self.over {
                break;
            }
            if self.steps.is_multiple_of(self.checks) {
                self.check()?;
            }
        }
        Ok(())
    }

    fn at(&mut self, us: u64, what: What) {
        self.agenda.insert((us.max(self.now_us), self.count), what);
        self.count += 1;
    }

    fn after(&mut self, us: u64, what: What) {
        self.at(self.now_us + us, what);
    }

    /// The trace tells runs apart by what happened when, where, and to how much.
    fn hash(&mut self, what: &What) {
        let (kind, node, size) = what.digest();
        for word in [self.now_us, kind, node, size] {
            self.trace = (self.trace ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
    }

    fn redis_now(&self) -> UnixMicros {
        UnixMicros((EPOCH_MS * 1000 + self.now_us).saturating_add_signed(self.redis.ahead_us))
    }

    /// Tells what happens at a node, if somebody wants to hear it.
    fn tell(&mut self, node: usize, tell: impl FnOnce(&mut Teller) -> Vec<Line>) {
        if let Some(story) = &mut self.story {
            story.node(self.now_us, node, tell);
        }
    }

    fn alive(&self, node: usize, life: u32) -> bool {
        self.nodes[node].engine.is_some() && self.nodes[node].life == life
    }

    fn step(&mut self, what: What) -> Checked {
        if let Some(node) = what.needs() {
            let until = self.nodes[node].still_until_us;
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
            What::Replies { node, life, connection, ticket, replies }
                if self.alive(node, life) && self.nodes[node].connection == connection =>
            {
                self.deliver(node, ticket, replies)
            }
            What::Loss(node, life, ticket) if self.alive(node, life) => {
                self.nodes[node].flying.remove(&ticket);
                self.with(node, |engine, now| engine.handle_loss(now, ticket))
            }
            What::Notice(node, life, wakeup) if self.alive(node, life) => {
                self.with(node, |engine, now| engine.handle_wakeup(now, wakeup))
            }
            What::Done(node, life, held, verdict) if self.alive(node, life) => {
                self.nodes[node].running.remove(&held);
                self.tell(node, |story| story.settled(held, &verdict));
                self.with(node, |engine, now| engine.settle(now, held, verdict))
            }
            What::Done(node, _, held, _) if self.nodes[node].engine.is_none() => {
                self.nodes[node].running.remove(&held);
                Ok(())
            }
            What::Settle(node, life, taken) if self.alive(node, life) => {
                let (lease, verdict) = *taken;
                self.ask(node, Asked::Other, Ask::Settle { lease, verdict })
            }
            What::Forget(node, life, token) if self.alive(node, life) => {
                self.nodes[node].asked.remove(&token);
                self.tell(node, |story| story.forgot(token));
                self.with(node, |engine, now| engine.forget(now, token))
            }
            What::Hears(node, life) if self.alive(node, life) => self.hear(node),
            What::Arrive(request) => self.arrive(*request),
            What::Act(act) if self.nodes[act.node].engine.is_some() => self.act(*act),
            What::Start(node) => self.start(node),
            What::Strike(strikes) if !self.calm => self.strike(&strikes),
            What::Up => {
                self.redis.down = false;
                Ok(())
            }
            What::Heal => {
                self.heal();
                Ok(())
            }
            What::Settled => self.see_settled(),
            What::Purge => self.purge_dead(),
            What::Drain => self.drain(),
            What::End => self.end(),
            _ => Ok(()),
        }
    }

    fn start(&mut self, node: usize) -> Checked {
        if let Some(edge) = &self.nodes[node].edge {
            let again_us = edge.limits.every_ms * 1000;
            if self.calm && (self.drained_us > 0 || !self.is_cron_alone()) {
                return Ok(());
            }
            self.after(again_us, What::Start(node));
        }
        if self.nodes[node].engine.is_some() {
            return Ok(());
        }
        let identity = Identity(self.identities.any());
        let now = self.nodes[node].clock.at(self.now_us);
        self.nodes[node].start(identity, now);
        self.nodes[node].term = self.redis.term;
        if let Some(story) = &mut self.story {
            story.forget(node);
            story::print(self.now_us, "", &format!("node {node} starts as engine {identity}"));
        }
        self.live.insert(identity, node);
        let (life, delay) = (self.nodes[node].life, self.nodes[node].network.number(100..=50_000));
        if self.nodes[node].edge.is_some() {
            self.start_edge(node, now);
        } else {
            self.after(delay, What::Hears(node, life));
        }
        self.with(node, |_, _| ())
    }

    fn hear(&mut self, node: usize) -> Checked {
        if self.redis.down {
            let life = self.nodes[node].life;
            self.after(100_000, What::Hears(node, life));
            return Ok(());
        }
        if let Some(engine) = &self.nodes[node].engine {
            self.store.subscribe(engine.identity());
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

    /// Gives a node an input, then does all that it asks for.
    fn with(&mut self, node: usize, input: impl FnOnce(&mut Engine, delayline_core::Millis)) -> Checked {
        let now = self.nodes[node].clock.at(self.now_us);
        let Some(mut engine) = self.nodes[node].engine.take() else { return Ok(()) };
        let busy = |engine: &Engine| node == 0 && engine.held() == usize::from(engine.config().slots);
        let was_busy = busy(&engine);
        input(&mut engine, now);
        let result = self.drive(node, &mut engine, now);
        if was_busy || busy(&engine) || !self.nodes[0].hears {
            self.busy_us = self.now_us;
        }
        self.nodes[node].engine = Some(engine);
        result?;
        self.after_edge(node)
    }

    fn drive(&mut self, node: usize, engine: &mut Engine, now: delayline_core::Millis) -> Checked {
        let mut spins = 0;
        loop {
            let mut moved = false;
            while let Some(event) = engine.poll_event() {
                moved = true;
                self.handle_event(node, event)?;
            }
            loop {
                let credit = self.credit(node);
                let Some(transmit) = engine.poll_transmit(credit) else { break };
                moved = true;
                ensure!(credit.trips > 0, "credit is respected", "node {node} had none left");
                self.check_transmit(node, &transmit)?;
                let (ticket, commands, forms) =
                    (transmit.ticket, transmit.commands.to_vec(), transmit.forms.to_vec());
                self.send(node, ticket, commands, forms);
            }
            spins += 1;
            ensure!(spins < SPIN_MAX, "poll_timeout makes progress", "node {node} spins at {now}");
            if moved {
                continue;
            }
            let asked = engine.poll_timeout();
            if let Some((at, reason)) = asked.filter(|(at, _)| *at <= now) {
                engine.handle_timeout(now);
                ensure!(
                    spins < SPIN_MAX - 1,
                    "poll_timeout makes progress",
                    "node {node} wants {at} for {reason:?} at {now}"
                );
                continue;
            }
            let wakes = self.nodes[node].edge_wakes().filter(|at| *at > now);
            let Some(at) = asked.map(|(at, _)| at).into_iter().chain(wakes).min() else { break };
            let us = self.nodes[node].clock.when(at, self.now_us);
            if self.nodes[node].armed_us.is_none_or(|armed| us < armed || armed < self.now_us) {
                self.nodes[node].armed_us = Some(us);
                let life = self.nodes[node].life;
                self.at(us, What::Timer(node, life));
            }
            break;
        }
        let held = engine.held();
        let slots = usize::from(engine.config().slots);
        ensure!(held <= slots, "every list is bounded", "node {node} holds {held} jobs in {slots} slots");
        Ok(())
    }

    fn credit(&self, node: usize) -> Credit {
        match &self.nodes[node].edge {
            Some(edge) => Credit { trips: edge.trips, per_job: edge.limits.per_job },
            None => Credit::UNLIMITED,
        }
    }
}

impl What {
    /// The node that must be running for this to happen.
    fn needs(&self) -> Option<usize> {
        match self {
            What::Timer(node, _)
            | What::Replies { node, .. }
            | What::Loss(node, ..)
            | What::Notice(node, ..)
            | What::Hears(node, _)
            | What::Done(node, ..)
            | What::Settle(node, ..)
            | What::Forget(node, ..) => Some(*node),
            What::Act(act) => Some(act.node),
            _ => None,
        }
    }

    /// Its kind, its node, and how much it carries.
    fn digest(&self) -> (u64, u64, u64) {
        let (kind, node, size) = match self {
            What::Timer(node, life) => (0, *node, u64::from(*life)),
            What::Arrive(request) => (1, request.node, request.commands.len() as u64),
            What::Replies { node, replies, .. } => (2, *node, replies.iter().map(weight).sum()),
            What::Loss(node, ..) => (3, *node, 0),
            What::Notice(node, ..) => (4, *node, 0),
            What::Hears(node, _) => (5, *node, 0),
            What::Done(node, ..) => (6, *node, 0),
            What::Settle(node, ..) => (7, *node, 0),
            What::Forget(node, ..) => (8, *node, 0),
            What::Act(act) => (9, act.node, 0),
            What::Start(node) => (10, *node, 0),
            What::Strike(_) => (11, 0, 0),
            What::Up => (12, 0, 0),
            What::Heal => (13, 0, 0),
            What::Settled => (14, 0, 0),
            What::Purge => (15, 0, 0),
            What::Drain => (16, 0, 0),
            What::End => (17, 0, 0),
        };
        (kind, node as u64, size)
    }
}

fn weight(reply: &Reply) -> u64 {
    match reply {
        Reply::Granted { jobs, fence, .. } => fence.0.wrapping_add(jobs.len() as u64),
        Reply::Published { outcomes, since, .. } => since.0.wrapping_add(outcomes.len() as u64),
        reply => reply.time().map_or(1, |time| time.0),
    }
}
