//! What strikes processes, machines and Redis.

use delayline_core::wire::Form;
use delayline_core::{Command, Identity, Session, Wakeup};
use delayline_embedded::{Damage, Key};

use super::{What, World};
use crate::sim::mistake::Slip;
use crate::sim::model::{Checked, Ledger, ensure};
use crate::sim::names;
use crate::sim::plan::{Spoil, Strikes, Why};
use crate::sim::story;

impl World<'_> {
    pub(super) fn strike(&mut self, strikes: &Strikes) -> Checked {
        if self.story.is_some() {
            story::print(self.now_us, "", &format!("{strikes:?}"));
        }
        if let Strikes::Spoil { queue, what } = strikes {
            self.spoil(*queue, what);
            return Ok(());
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
            Strikes::Demote { lost } => {
                self.roll_back(lost)?;
                self.hear_again();
                self.redis.scripts.clear();
                self.redis.term += 1;
            }
            Strikes::FlushAll => self.flush_all(),
            Strikes::Garble { node, verb, how } => self.nodes[node].garbles.push((verb, how)),
            Strikes::Step { node, down_ms, ms } => {
                let tends = self.tending();
                if tends.is_some() {
                    self.marks.reach("a clock steps while who tended is down");
                }
                self.crash(tends.unwrap_or(node), down_ms);
                self.jump_redis(ms);
            }
            Strikes::Panic { node, down_ms } => self.panic(node, down_ms)?,
            Strikes::Visit { queue, count } => self.visit(queue, count)?,
            Strikes::Spoil { .. } => {}
        }
        Ok(())
    }

    /// A new primary takes over the connections for notifications too: a replica passes on what its primary publishes.
    fn hear_again(&mut self) {
        for node in self.nodes.iter().filter(|node| node.hears) {
            if let Some(engine) = &node.engine {
                self.store.subscribe(engine.identity());
            }
        }
    }

    /// Nothing is left but connections and scripts.
    fn flush_all(&mut self) {
        if self.ledger.accepted().next().is_some() {
            self.marks.reach("a full Redis is emptied");
        }
        self.unopened = true;
        self.store.clear();
        self.hear_again();
        let before = std::mem::take(&mut self.ledger);
        self.witness.loses(before.accepted());
        self.redis.log = self.redis.log.take().map(|_| Vec::new());
    }

    /// The engine of the process, or of the next one that runs jobs, is gone. The driver tells the handlers that their jobs
    /// are lost.
    fn panic(&mut self, node: usize, down_ms: u64) -> Checked {
        let mut processes = (node..self.nodes.len()).chain(0..node);
        let node = processes.find(|node| !self.nodes[*node].running.is_empty()).unwrap_or(node);
        self.end_engine(node, down_ms)
    }

    pub(super) fn end_engine(&mut self, node: usize, down_ms: u64) -> Checked {
        if !self.nodes[node].running.is_empty() {
            self.marks.reach("an engine panics with jobs in hand");
        }
        let running = std::mem::take(&mut self.nodes[node].running);
        self.crash(node, down_ms);
        if self.slips(Slip::PanicUntold) {
            self.nodes[node].running = running;
            return Ok(());
        }
        running.into_values().try_for_each(|(key, fence)| self.check_abandoned(key, fence))
    }

    /// Nobody answers for what was written over, but all else of the queue goes on. What is lost so no failover takes back.
    fn spoil(&mut self, queue: usize, what: &Spoil) {
        let damage = match what {
            Spoil::State { job, text } => {
                let Some(job) = self.ledger.job_from(queue, *job) else { return };
                self.ledger.spoil_job((queue, job));
                Damage::State { id: names::job(job), text: text.clone().into() }
            }
            Spoil::Score { job } => {
                let Some(job) = self.ledger.held_from(queue, *job) else { return };
                self.ledger.spoil_job((queue, job));
                Damage::Score { key: Key::Leased, id: names::job(job), score: f64::INFINITY }
            }
            Spoil::Meta { field, text } => {
                self.ledger.spoil_counts(queue);
                Damage::Meta { field: field.clone(), text: text.clone().into() }
            }
            Spoil::Key { name } => {
                let Some((_, key)) = Spoil::KEYS.iter().find(|(known, _)| known == name) else { return };
                match key {
                    Key::Agenda | Key::Waiting => {}
                    Key::Queues => self.ledger.spoil_names(),
                    key => {
                        let lost = self.ledger.spoil_queue(queue, *key == Key::Meta);
                        self.witness.loses(lost);
                    }
                }
                Damage::Foreign { key: *key, text: "x".into() }
            }
            Spoil::Name => {
                self.ledger.spoil_names();
                Damage::Unnamed
            }
            Spoil::Config => {
                self.unopened = true;
                Damage::Unopened
            }
        };
        self.spoiled = true;
        self.marks.reach("a value is written over");
        self.store.damage(&names::queue(queue), &damage);
        self.redis.log = None;
    }

    /// Each visitor is an engine of its own, that asks one thing and is not seen again.
    fn visit(&mut self, queue: usize, count: u64) -> Checked {
        if self.redis.down {
            return Ok(());
        }
        self.marks.reach("many processes come and go");
        self.visited.insert(queue);
        let queue = names::queue(queue);
        for number in 0..count {
            let engine = Identity(self.handlers.any());
            let session = Session { engine, lane: 0, sequence: 1 };
            let command = if number % 2 == 0 {
                Command::Cancel { queue: queue.clone(), session, ids: vec![names::job(u32::MAX)] }
            } else {
                let (count, lease_ms, max_bytes, wakeable) = (0, 1_000, 1_000, false);
                Command::Reserve { queue: queue.clone(), session, count, lease_ms, max_bytes, wakeable }
            };
            self.execute(&command, Form::Source)?;
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
    pub(super) fn reset(&mut self, node: usize) {
        let (life, lost) = (self.nodes[node].life, self.nodes[node].flying.clone());
        (self.nodes[node].connection, self.nodes[node].term) =
            (self.nodes[node].connection + 1, self.redis.term);
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
