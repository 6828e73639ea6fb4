//! What strikes processes, machines and Redis.

use delayline_core::Wakeup;

use super::{What, World};
use crate::sim::model::{Checked, Ledger, ensure};
use crate::sim::plan::{Strikes, Why};
use crate::sim::story;

impl World<'_> {
    pub(super) fn strike(&mut self, strikes: &Strikes) -> Checked {
        if self.story.is_some() {
            story::print(self.now_us, "", &format!("{strikes:?}"));
        }
        match *strikes {
            Strikes::Crash { node, down_ms } => self.crash(node, down_ms),
            Strikes::Pause { node, ms } => self.stand_still(node, ms),
            Strikes::Suspend { machine, ms, counted } => self.suspend(machine, ms, counted),
            Strikes::Reset { node } => self.reset(node),
            Strikes::Deafen { node, ms } => self.deafen(node, ms * 1000),
            Strikes::Jump { node, ms } => {
                self.nodes[node].clock.jump(self.now_us, ms * 1000);
                let life = self.nodes[node].life;
                self.after(0, What::Timer(node, life));
            }
            Strikes::RedisJump { ms } => self.jump_redis(ms),
            Strikes::Flush => self.redis.scripts.clear(),
            Strikes::Stall { ms } => {
                self.redis.still_until_us = self.redis.still_until_us.max(self.now_us + ms * 1000);
            }
            Strikes::Refuse { why, ms } => self.redis.refuses = Some((why, self.now_us + ms * 1000)),
            Strikes::Restart { down_ms, loading_ms } => self.go_down(down_ms, loading_ms),
            Strikes::Failover { down_ms, lost, skew_ms } => {
                self.roll_back(lost)?;
                self.jump_redis(skew_ms);
                self.go_down(down_ms, 0);
            }
        }
        Ok(())
    }

    fn crash(&mut self, node: usize, down_ms: u64) {
        if !self.nodes[node].running.is_empty() {
            self.marks.reach("an engine crashes with jobs in hand");
        }
        self.silence(node);
        self.nodes[node].end();
        if self.nodes[node].edge.is_none() {
            self.after(down_ms * 1000, What::Start(node));
        }
    }

    fn stand_still(&mut self, node: usize, ms: u64) {
        let until = self.now_us + ms * 1000;
        self.nodes[node].still_until_us = self.nodes[node].still_until_us.max(until);
    }

    fn suspend(&mut self, machine: u8, ms: u64, counted: bool) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].machine != machine {
                continue;
            }
            self.stand_still(node, ms);
            if !counted {
                let slept_us = i64::try_from(ms * 1000).unwrap_or(0);
                self.nodes[node].clock.jump(self.now_us, -slept_us);
            }
            if self.nodes[node].network.percent(50) {
                self.reset(node);
            }
        }
    }

    /// All connections of a node break.
    fn reset(&mut self, node: usize) {
        let (life, lost) = (self.nodes[node].life, self.nodes[node].flying.clone());
        self.nodes[node].connection += 1;
        for ticket in lost.into_keys() {
            self.after(100, What::Loss(node, life, ticket));
        }
        let us = self.nodes[node].network.number(1_000..=500_000);
        self.deafen(node, us);
    }

    fn deafen(&mut self, node: usize, us: u64) {
        if self.nodes[node].hears {
            self.silence(node);
            let life = self.nodes[node].life;
            self.after(100, What::Notice(node, life, Wakeup::Unsubscribed));
            self.after(us.max(200), What::Hears(node, life));
        }
    }

    fn jump_redis(&mut self, ms: i64) {
        self.redis.ahead_us += ms * 1000;
        self.witness.set_back |= ms < 0;
    }

    fn go_down(&mut self, down_ms: u64, loading_ms: u64) {
        self.redis.down = true;
        self.redis.scripts.clear();
        if loading_ms > 0 {
            self.redis.refuses = Some((Why::Loading, self.now_us + (down_ms + loading_ms) * 1000));
        }
        (0..self.nodes.len()).for_each(|node| self.reset(node));
        self.after(down_ms * 1000, What::Up);
    }

    /// The store is what it was before the last commands.
    fn roll_back(&mut self, lost: usize) -> Checked {
        let Some(mut log) = self.redis.log.take() else { return Ok(()) };
        let tail = log.split_off(log.len().saturating_sub(lost));
        self.store.clear();
        let before = std::mem::take(&mut self.ledger);
        let (mut witness, mut marks) = (self.witness.for_replay(), self.marks.clone());
        for (now, command, reply) in &log {
            let again = self.store.execute(*now, command);
            ensure!(again == *reply, "equal commands have equal replies", "{reply:?}, then {again:?}");
            self.ledger.observe(*now, command, reply, &mut witness, &mut marks)?;
        }
        self.store.heard();
        if tail.iter().any(|(_, command, _)| matches!(command, delayline_core::Command::Settle { .. })) {
            self.marks.reach("a failover loses a verdict");
        }
        let kept = |ledger: &Ledger, instance: &_| ledger.times_accepted(instance) > 0;
        let lost: Vec<_> = before.accepted().filter(|instance| !kept(&self.ledger, instance)).collect();
        if !lost.is_empty() {
            self.marks.reach("a failover loses an acknowledged publish");
        }
        self.witness.loses(lost);
        self.redis.log = Some(log);
        Ok(())
    }
}
