use std::collections::BTreeMap;

use delayline_core::{
    Config, Engine, Fence, Held, Identity, Millis, Pacing, Pumping, QueueName, Reply, Shards, Subscription,
    Ticket, Token,
};

use super::DELIVERY_MS;
use super::clock::Clock;
use super::model::{Instance, Key};
use super::names;
use super::plan::{Edge, Garble, NodePlan, Pump, Verb};
use crate::Random;

/// A process with one engine: its clock, its callers, its network, and whether it runs at all.
pub(super) struct Node {
    pub(super) engine: Option<Engine>,
    pub(super) config: Config,
    pub(super) clock: Clock,
    pub(super) machine: u8,
    /// Grows with each start, so that what was meant for a former life is known.
    pub(super) life: u32,
    pub(super) asked: BTreeMap<Token, Asked>,
    /// Round trips whose fate the driver does not know yet.
    pub(super) flying: BTreeMap<Ticket, Flying>,
    /// Grows with each break of its connections.
    pub(super) connection: u32,
    /// Which primary its connection leads to: one of an earlier term than Redis's was demoted.
    pub(super) term: u32,
    /// Answers to come that will be garbled.
    pub(super) garbles: Vec<(Verb, Garble)>,
    /// Whether an answer to it was.
    pub(super) was_garbled: bool,
    /// Jobs that run here, and under which grant.
    pub(super) running: BTreeMap<Held, (Key, Fence)>,
    pub(super) armed_us: Option<u64>,
    /// Stands still until then; what arrives meanwhile waits.
    pub(super) still_until_us: u64,
    pub(super) hears: bool,
    pub(super) edge: Option<EdgeRun>,
    /// Decides the fate of this node's messages.
    pub(super) network: Random,
    tokens: u64,
}

/// What is left to a process that cron started.
pub(super) struct EdgeRun {
    pub(super) limits: Edge,
    pub(super) trips: u32,
    /// When it must be over, by its clock.
    pub(super) ends: Millis,
    /// Awaits until it is killed.
    pub(super) dies_in: Option<u64>,
    pub(super) draining: bool,
}

/// A round trip under way: when it left, and the queues that it asks for jobs.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    pub(super) sent_us: u64,
    /// By the place of the command.
    pub(super) reserves: BTreeMap<usize, QueueName>,
}

/// What a caller waits for.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Publish(Instance),
    Cancel(usize, u32),
    Reschedule(usize, u32),
    /// Jobs of these queues; whether one of them was asked since.
    Take(Vec<QueueName>, bool),
    Other,
}

impl Asked {
    pub(super) fn is_take(&self) -> bool {
        matches!(self, Asked::Take(..))
    }
}

impl Node {
    pub(super) fn new(plan: &NodePlan, shards: u16, network: Random) -> Node {
        let limits = plan.edge.clone();
        let edge = limits.map(|limits| EdgeRun {
            limits,
            trips: 0,
            ends: Millis(0),
            dies_in: None,
            draining: false,
        });
        Node {
            engine: None,
            config: config(plan, shards),
            clock: Clock::new(plan.offset_ms, plan.drift_ppm),
            machine: plan.machine,
            life: 0,
            asked: BTreeMap::new(),
            flying: BTreeMap::new(),
            connection: 0,
            term: 0,
            garbles: Vec::new(),
            was_garbled: false,
            running: BTreeMap::new(),
            armed_us: None,
            still_until_us: 0,
            hears: false,
            edge,
            network,
            tokens: 0,
        }
    }

    /// Starts afresh under a new identity.
    ///
    /// # Panics
    /// If a plan's config cannot be used.
    pub(super) fn start(&mut self, identity: Identity, now: Millis) {
        let engine = Engine::new(self.config.clone(), identity, now);
        self.engine = Some(engine.expect("a plan's configs are valid"));
        self.running.clear();
        self.life += 1;
    }

    /// All it knew is gone.
    pub(super) fn end(&mut self) {
        self.engine = None;
        self.life += 1;
        self.hears = false;
        self.armed_us = None;
        self.asked.clear();
        self.flying.clear();
        self.running.clear();
    }

    pub(super) fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// How long before its end an edge process must take nothing new.
    fn leave_ms(&self) -> u64 {
        DELIVERY_MS + 2 * self.config.flight_ms
    }

    /// Whether somebody waits for more than jobs, or an edge process still runs.
    pub(super) fn has_callers(&self) -> bool {
        let publishes = |engine: &Engine| engine.room() < self.config.pending_jobs || self.edge.is_some();
        self.engine.as_ref().is_some_and(publishes) || self.asked.values().any(|asked| !asked.is_take())
    }

    /// When an edge process must look at its clock.
    pub(super) fn edge_wakes(&self) -> Option<Millis> {
        let edge = self.edge.as_ref()?;
        Some(if edge.draining { edge.ends } else { self.leaves(edge) })
    }

    /// From when on an edge process takes nothing new.
    pub(super) fn leaves(&self, edge: &EdgeRun) -> Millis {
        Millis(edge.ends.0.saturating_sub(self.leave_ms()))
    }

    /// A reserve was answered: whoever waits for jobs of its queue was not forgotten.
    pub(super) fn was_answered(&mut self, flying: &Flying, replies: &[Reply]) {
        for (place, queue) in &flying.reserves {
            if !matches!(replies.get(*place), Some(Reply::Granted { .. } | Reply::Superseded { .. })) {
                continue;
            }
            for asked in self.asked.values_mut() {
                if let Asked::Take(queues, was_asked) = asked {
                    *was_asked |= queues.contains(queue);
                }
            }
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.flying.is_empty() && self.running.is_empty() && self.asked.is_empty()
    }
}

fn config(plan: &NodePlan, shards: u16) -> Config {
    let subscription =
        |&(queue, weight, max): &(usize, u16, u16)| Subscription { queue: names::queue(queue), weight, max };
    // Of what is drawn anyway, so that plans stay what they are.
    let drawn = plan.lease_ms + plan.poll_ms + u64::from(plan.slots) + u64::from(plan.reserve_max);
    Config {
        shards: Shards::new(shards).unwrap_or_default(),
        subscriptions: plan.subscriptions.iter().map(subscription).collect(),
        slots: plan.slots,
        pump: match plan.pump {
            Pump::Never => Pumping::Never,
            Pump::WhileTaking => Pumping::WhileTaking,
            Pump::WhenDue => Pumping::WhenDue,
            Pump::Always => Pumping::Always,
        },
        lease_ms: plan.lease_ms,
        poll_ms: plan.poll_ms,
        pump_lease_ms: plan.pump_lease_ms,
        flight_ms: plan.flight_ms,
        pacing: if drawn.is_multiple_of(3) { Pacing::Thrifty } else { Pacing::Punctual },
        gap_ms: drawn % 21,
        reserve_max: plan.reserve_max,
        reserve_bytes: plan.reserve_bytes,
        ..Config::default()
    }
}
