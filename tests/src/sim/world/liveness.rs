//! Faults end, and everything must: due jobs are settled within a bound, the dead are purged, engines drain, and nothing
//! is left behind.

use delayline_core::{Ask, Engine};

use super::oracles::PLACES;
use super::{EPOCH_MS, What, World};
use crate::sim::model::{Checked, ensure};
use crate::sim::names;
use crate::sim::node::{Asked, Node};
use crate::sim::plan::{Act, Asks, Rates};
use crate::sim::story;

const LOOK_US: u64 = 100_000;
/// A lease that a take may have asked for, and a delay after a lost lease.
const TAKE_LEASE_MS: u64 = 5_000;
const LOST_DELAY_MS: u64 = 2_000;
/// The longest pause before a resend.
const PAUSE_MS: u64 = 2_000;
/// What callers, handlers and the network take when nothing fails.
const MARGIN_MS: u64 = 2_000;

impl World<'_> {
    /// Faults end.
    pub(super) fn heal(&mut self) {
        self.calm = true;
        if self.story.is_some() {
            story::print(self.now_us, "", "faults end");
        }
        self.rates = Rates::default();
        (self.redis.down, self.redis.refuses, self.redis.still_until_us) = (false, None, self.now_us);
        self.deliver_all();
        (0..self.nodes.len()).for_each(|node| {
            self.nodes[node].garbles.clear();
            self.revive(node);
        });
        self.anchor_us = self.now_us.max(self.last_act_us);
        self.tended_us = self.now_us;
        self.at(self.anchor_us + 2 * LOOK_US, What::Settled);
    }

    /// What is on its way arrives at once, in its order; what was lost, or comes a second time, does not.
    fn deliver_all(&mut self) {
        let alive: Vec<_> = self.nodes.iter().map(|node| node.engine.as_ref().map(|_| node.life)).collect();
        let flying = self.agenda.iter().filter(|(_, what)| matches!(what, What::Arrive(_)));
        let keys: Vec<_> = flying.map(|(key, _)| *key).collect();
        for key in keys {
            let Some(What::Arrive(request)) = self.agenda.remove(&key) else { continue };
            if !request.copy && alive[request.node] == Some(request.life) {
                self.after(1_000, What::Arrive(request));
            }
        }
    }

    /// The node runs, hears, and goes on with what waited until it should have.
    fn revive(&mut self, node: usize) {
        let (was, soon) = (self.nodes[node].still_until_us, self.now_us + LOOK_US);
        if was > soon {
            let waited = |at: &u64, what: &What| (soon..=was).contains(at) && what.needs() == Some(node);
            let keys: Vec<_> =
                self.agenda.iter().filter(|((at, _), what)| waited(at, what)).map(|(key, _)| *key).collect();
            for key in keys {
                if let Some(what) = self.agenda.remove(&key) {
                    self.at(soon, what);
                }
            }
        }
        let until = was.min(soon);
        self.nodes[node].still_until_us = until;
        let this = &self.nodes[node];
        if this.engine.is_none() {
            self.at(until, What::Start(node));
        } else if !this.hears && this.edge.is_none() {
            let life = this.life;
            self.at(until, What::Hears(node, life));
        }
    }

    /// Whether all that was due has come to an end; it has a bounded time to.
    pub(super) fn see_settled(&mut self) -> Checked {
        if self.now_us < self.last_act_us {
            self.anchor_us = self.last_act_us;
            self.at(self.last_act_us + LOOK_US, What::Settled);
            return Ok(());
        }
        self.resume()?;
        self.check_tended()?;
        let left = self.ledger.unfinished();
        for (_, due) in &left {
            let due_us = (due.0.saturating_sub(EPOCH_MS) * 1000).saturating_add_signed(-self.redis.ahead_us);
            self.anchor_us = self.anchor_us.max(due_us);
        }
        if self.stepped && left.is_empty() {
            self.anchor_us = self.anchor_us.max(self.last_in(&PLACES));
        }
        let waits = self.nodes.iter().any(Node::has_callers);
        if waits {
            self.anchor_us = self.now_us;
        }
        let places = if left.is_empty() { self.places_in_use() } else { Vec::new() };
        if left.is_empty() && places.is_empty() && !waits {
            self.settled_us = Some(self.now_us);
            self.after(0, What::Purge);
            return Ok(());
        }
        let (shown, late) =
            (left.iter().map(|(what, _)| what.as_str()).take(5), self.is_late(self.anchor_us));
        ensure!(
            !late,
            "all settles once faults end",
            "{} jobs are left after {} ms: {}{places:?}",
            left.len(),
            self.bound_us / 1000,
            shown.collect::<Vec<_>>().join("; ")
        );
        self.after(LOOK_US, What::Settled);
        Ok(())
    }

    /// Somebody tends what is overdue, whoever held the lease before, and whatever else has yet to come.
    fn check_tended(&mut self) -> Checked {
        if !self.is_overdue() {
            self.tended_us = self.now_us;
        }
        let since_us = self.tended_us.max(self.last_act_us);
        ensure!(
            !self.is_late(since_us),
            "what is overdue is tended",
            "nobody tends what is on the agenda since {} ms",
            since_us / 1000
        );
        Ok(())
    }

    /// What callers paused is resumed, as often as an earlier request of theirs still pauses it.
    fn resume(&mut self) -> Checked {
        if self.nodes[0].engine.is_none() {
            return Ok(());
        }
        for queue in (0..self.queues.len()).filter(|queue| self.ledger.is_paused(*queue)).collect::<Vec<_>>()
        {
            self.anchor_us = self.now_us;
            self.act(Act { at_ms: 0, node: 0, what: Asks::Pause { queue, paused: false } })?;
        }
        Ok(())
    }

    pub(super) fn purge_dead(&mut self) -> Checked {
        let dump = self.store.dump();
        if !dump.keys().any(|key| key.ends_with(":dead")) {
            let first = &self.nodes[0].config;
            let look_ms = first.pump_lease_ms + first.poll_ms + 2 * first.flight_ms + self.set_back_ms;
            self.after(if self.unopened { look_ms * 1000 } else { 0 }, What::Drain);
            return Ok(());
        }
        let mut since_us = self.settled_us.unwrap_or(self.now_us);
        if self.stepped {
            since_us = since_us.max(self.last_in(&[":dead"]));
        }
        ensure!(!self.is_late(since_us), "all settles once faults end", "dead letters cannot be purged");
        if self.nodes[0].asked.values().all(Asked::is_take) {
            for queue in 0..self.queues.len() {
                self.ask(0, Asked::Other, Ask::Purge { queue: names::queue(queue), ids: None })?;
            }
        }
        self.after(LOOK_US, What::Purge);
        Ok(())
    }

    pub(super) fn drain(&mut self) -> Checked {
        self.check_config()?;
        self.drained_us = self.now_us;
        let nodes = 0..self.nodes.len();
        nodes
            .filter(|node| self.nodes[*node].edge.is_none())
            .collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|node| self.with(node, Engine::drain))?;
        self.after(LOOK_US, What::End);
        Ok(())
    }

    pub(super) fn end(&mut self) -> Checked {
        let ended = |node: &Node| node.engine.as_ref().is_none_or(Engine::is_drained);
        if self.nodes.iter().all(ended) {
            self.over = true;
            self.check()?;
            return self.check_end();
        }
        let running = self.nodes.iter().position(|node| !ended(node)).unwrap_or(0);
        let engine = self.nodes[running].engine.as_ref();
        ensure!(
            !self.is_late(self.drained_us),
            "a drained engine ends",
            "node {running} does not: {:?}",
            engine.map(|engine| (engine.held(), engine.poll_timeout()))
        );
        self.after(LOOK_US, What::End);
        Ok(())
    }

    pub(super) fn settled_percent(&self) -> u64 {
        let took = self.settled_us.unwrap_or(0).saturating_sub(self.anchor_us);
        took * 100 / self.bound_us.max(1)
    }

    /// How long settling may take: a lease must end, a poll come round, a pump lease be taken over, and the round trips
    /// for it be repeated once, by engines whose clocks first catch up with what they showed before.
    pub(super) fn bound_us(&self, back_ms: u64) -> u64 {
        let most = |what: &dyn Fn(&Node) -> u64| self.nodes.iter().map(what).max().unwrap_or(0);
        let lease = most(&|node| node.config.lease_ms).max(TAKE_LEASE_MS) + LOST_DELAY_MS;
        let poll = most(&|node| node.config.poll_ms);
        let pump = most(&|node| node.config.pump_lease_ms);
        let flight = 3 * (most(&|node| node.config.flight_ms) + PAUSE_MS);
        let edge = most(&|node| {
            node.edge.as_ref().map_or(0, |edge| edge.limits.deadline_ms + 2 * edge.limits.every_ms)
        });
        (lease + poll + pump + flight + edge + back_ms + MARGIN_MS) * 1000
    }

    fn is_late(&self, since_us: u64) -> bool {
        self.now_us > since_us + self.bound_us
    }
}
