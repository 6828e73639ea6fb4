use alloc::vec::Vec;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::base::{Base, STUCK_MS, Timer};
use super::flight::{Flights, Landed, Lane};
use super::set::Set;
use crate::{
    ClockModel, Command, Event, Forward, Identity, Key, Millis, Pumping, QueueName, Reply, Shard, Shards,
    UnixMicros, UnixMs,
};

const ENTRIES: u16 = 64;
const TEND_LIMIT: u16 = 256;

/// Tends shards: holds their pump lease if nobody else does, arms a timer for what comes next in each queue, and does
/// what must happen there.
#[derive(Serialize, Deserialize)]
pub(super) struct Pump {
    shards: LiteMap<Shard, Tending>,
    queues: LiteMap<QueueName, Tended>,
    idle: Set<QueueName>,
    active: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Tending {
    flying: bool,
    wanted: bool,
    timer: Option<Key>,
    /// Until when the lease is ours, by the engine's clock.
    lease_end: Option<Millis>,
    entries: LiteMap<QueueName, Key>,
}

#[derive(Default, Serialize, Deserialize)]
struct Tended {
    flying: bool,
    again: bool,
    forward: Option<Forward>,
}

impl Pump {
    pub(super) fn new(base: &Base) -> Pump {
        let shards = match base.config.pump {
            Pumping::Never => LiteMap::new(),
            _ => all(base.config.shards),
        };
        let mut pump = Pump { shards, queues: LiteMap::new(), idle: Set::default(), active: false };
        pump.set_active(base, matches!(base.config.pump, Pumping::WhenDue | Pumping::Always));
        pump
    }

    /// Whether this engine is to stand for pump leases now. It looks only where it does not know who holds the lease, and
    /// for how long.
    pub(super) fn set_active(&mut self, base: &Base, active: bool) {
        let active = active && !base.draining;
        if active != self.active {
            let wanted = |tending: &Tending| active && tending.timer.is_none();
            self.shards.iter_mut().for_each(|(_, tending)| tending.wanted = wanted(tending));
        }
        self.active = active;
    }

    pub(super) fn is_idle(&self, now: Millis) -> bool {
        self.queues.values().all(|tended| !tended.flying)
            && self.shards.values().all(|tending| tending.is_idle(now))
    }

    pub(super) fn holds(&self, shard: Shard, now: Millis) -> bool {
        self.shards.get(&shard).is_some_and(|tending| tending.holds(now))
    }

    /// Whether this engine arms for what comes next in a queue that it just asked or tended: a run that cron started does
    /// without the lease, which only keeps others from doing the same.
    fn may_tend(&self, base: &Base, queue: &QueueName) -> bool {
        let alone = base.config.pump == Pumping::WhenDue && self.active;
        let held = self.holds(base.config.shards.of(queue), base.now);
        alone || (held && self.keeps(base))
    }

    /// Whether it tends what it holds. One whose takes are all served keeps its leases until they end, if it hears of what
    /// is due: giving them up would have everybody else look for them, at each job that is taken.
    fn keeps(&self, base: &Base) -> bool {
        self.active || (base.wakeable && !base.draining)
    }

    /// Asks every shard afresh: notifications may have been missed, or the clock has stepped.
    pub(super) fn look_again(&mut self, base: &mut Base) {
        let (active, keeps) = (self.active, self.keeps(base));
        for (_, tending) in self.shards.iter_mut() {
            tending.look_again(base, active || (keeps && tending.holds(base.now)));
        }
    }

    /// The shard's holder looks again; a head of 0 says that it has none any more, and asks everybody.
    pub(super) fn handle_head(&mut self, base: &mut Base, shard: Shard, at: UnixMs) {
        let (active, keeps) = (self.active, self.keeps(base));
        let Some(tending) = self.shards.get_mut(&shard) else { return };
        let ours = keeps && tending.holds(base.now);
        if ours || at.0 == 0 {
            tending.look_again(base, ours || active);
        }
    }

    pub(super) fn handle_peek_timer(&mut self, base: &Base, shard: Shard) {
        let (active, keeps) = (self.active, self.keeps(base));
        if let Some(tending) = self.shards.get_mut(&shard) {
            tending.timer = None;
            tending.wanted = active || (keeps && tending.holds(base.now));
        }
    }

    /// The time of a queue's next event has come: `true` if it is to be looked after now.
    pub(super) fn handle_entry(&mut self, base: &Base, shard: Shard, queue: &QueueName) -> bool {
        let (active, keeps) = (self.active, self.keeps(base));
        let Some(tending) = self.shards.get_mut(&shard) else { return false };
        tending.entries.remove(queue).is_some() && (active || (keeps && tending.holds(base.now)))
    }

    /// Does in the queue what must happen there, which also wakes an engine if jobs are due.
    pub(super) fn tend(&mut self, queue: &QueueName) {
        let tended = self.queues.entry(queue.clone()).or_default();
        if tended.flying {
            tended.again = true;
        } else {
            self.idle.insert(queue.clone());
        }
    }

    /// A reserve learnt when the next event of the queue is. What is overdue though it has run is not for a reserve to do:
    /// a TTL or a retention ended.
    pub(super) fn learn(
        &mut self,
        base: &mut Base,
        queue: &QueueName,
        next: Option<UnixMs>,
        time: UnixMicros,
    ) {
        if self.may_tend(base, queue) && next.is_some_and(|at| at <= time.floor_ms()) {
            self.tend(queue);
        } else {
            self.schedule(base, queue, next);
        }
    }

    /// Something just learnt when the next event of the queue is.
    pub(super) fn schedule(&mut self, base: &mut Base, queue: &QueueName, next: Option<UnixMs>) {
        let shard = base.config.shards.of(queue);
        if !self.may_tend(base, queue) {
            return;
        }
        let Some(tending) = self.shards.get_mut(&shard) else { return };
        let old = tending.entries.remove(queue);
        base.cancel(old);
        if let Some(at) = next.and_then(|at| base.clock.ask_at(base.now, at)) {
            let key = base.wheel.insert(at, Timer::Tend(queue.clone()));
            tending.entries.insert(queue.clone(), key);
        }
    }

    pub(super) fn form(&mut self, base: &mut Base, flights: &mut Flights) {
        let keeps = self.keeps(base);
        for (&shard, tending) in &mut self.shards {
            let leave = !keeps && tending.holds(base.now);
            if tending.flying || !(tending.wanted || leave) {
                continue;
            }
            (tending.flying, tending.wanted) = (true, false);
            let lease_ms = if leave { 0 } else { base.config.pump_lease_ms };
            let stay = base.config.pump != Pumping::WhenDue;
            let queues = if stay || leave { Vec::new() } else { subscribed(base, shard) };
            let command =
                Command::Peek { shard, engine: base.identity, entries: ENTRIES, lease_ms, stay, queues };
            flights.submit(base, Lane::Peek(shard), command, base.config.pump_lease_ms);
        }
        for queue in core::mem::take(&mut self.idle) {
            let Some(tended) = self.queues.get_mut(&queue) else { continue };
            (tended.flying, tended.again) = (true, false);
            let command =
                Command::Tend { queue: queue.clone(), limit: TEND_LIMIT, forward: tended.forward.clone() };
            flights.submit(base, Lane::Tend(queue), command, base.config.pump_lease_ms);
        }
    }

    /// Answers which of the queues that were looked at have due jobs.
    pub(super) fn handle_peeked(&mut self, base: &mut Base, shard: Shard, landed: Landed) -> Vec<QueueName> {
        let (active, keeps) = (self.active, self.keeps(base));
        let Some(tending) = self.shards.get_mut(&shard) else { return Vec::new() };
        tending.flying = false;
        base.cancel(tending.timer.take());
        for (_, key) in core::mem::take(&mut tending.entries) {
            base.wheel.cancel(key);
        }
        let held = tending.lease_end.take();
        let Some(Reply::Peeked { time, holder, agenda, firsts }) = landed.reply else {
            if !active && keeps {
                tending.lease_end = held;
            }
            if active || tending.holds(base.now) {
                base.events.push_back(Event::Fault(landed.batch.fault(landed.reply)));
                tending.timer = Some(base.after(STUCK_MS, Timer::Peek(shard)));
            }
            return Vec::new();
        };
        let sent = landed.batch.first_sent.unwrap_or(base.now);
        let ours = holder.is_some_and(|(holder, _)| holder == base.identity);
        let Command::Peek { queues, stay, .. } = landed.batch.command else { return Vec::new() };
        let longest = ClockModel::lease_end(sent, base.config.pump_lease_ms);
        let known = holder.and_then(|(_, until)| base.clock.ask_at(base.now, until));
        let end = known.map_or(longest, |known| known.min(longest));
        tending.lease_end = ours.then_some(end);
        if !(active || keeps && tending.holds(base.now)) {
            return Vec::new();
        }
        if !stay {
            let looked: Vec<_> = queues.into_iter().zip(firsts).collect();
            return tending.look(base, shard, (time, holder.is_none() || ours), agenda, looked);
        }
        let next = match holder {
            Some(_) if ours => {
                let last = tending.arm(base, &agenda);
                let renew = if active { sent + base.config.pump_lease_ms / 2 } else { end };
                last.map_or(renew, |last| renew.min(last))
            }
            other => standby(base, other),
        };
        tending.timer = Some(base.wheel.insert(next.max(base.now + 1), Timer::Peek(shard)));
        Vec::new()
    }

    pub(super) fn handle_tended(&mut self, base: &mut Base, queue: &QueueName, landed: Landed) {
        let Some(tended) = self.queues.get_mut(queue) else { return };
        tended.flying = false;
        let mut again = tended.again && !base.draining;
        let (mut next, mut stuck) = (None, false);
        match landed.reply {
            Some(Reply::Tended { time, ended, expired, purged, forwarded, next: at, more, forward }) => {
                if [ended, expired, purged, forwarded] != [0; 4] {
                    let queue = queue.clone();
                    base.events.push_back(Event::Tended { queue, ended, expired, purged, forwarded });
                }
                let found = forward.is_some() && forward != tended.forward;
                tended.forward = forward;
                again |= (more || found) && !base.draining;
                next = at.map(|at| if at <= time.floor_ms() { time.floor_ms() + STUCK_MS } else { at });
            }
            other => {
                base.events.push_back(Event::Fault(landed.batch.fault(other)));
                stuck = true;
            }
        }
        if again {
            self.idle.insert(queue.clone());
        } else if self.queues.get(queue).is_some_and(|tended| tended.forward.is_none()) || base.draining {
            self.queues.remove(queue);
        }
        self.schedule(base, queue, next);
        if stuck {
            self.retry(base, queue);
        }
    }

    /// What the tending should have done, or told, is still to come.
    fn retry(&mut self, base: &mut Base, queue: &QueueName) {
        let shard = base.config.shards.of(queue);
        if !self.may_tend(base, queue) {
            return;
        }
        if let Some(tending) = self.shards.get_mut(&shard) {
            let key = base.after(STUCK_MS, Timer::Tend(queue.clone()));
            tending.entries.insert(queue.clone(), key);
        }
    }
}

impl Tending {
    fn is_idle(&self, now: Millis) -> bool {
        !self.flying && !self.holds(now)
    }

    fn holds(&self, now: Millis) -> bool {
        self.lease_end.is_some_and(|end| now < end)
    }

    /// What it knew of the lease and the agenda is over: it looks now if that is `wanted`, else once it stands for leases.
    fn look_again(&mut self, base: &mut Base, wanted: bool) {
        self.wanted = wanted;
        if !wanted {
            base.cancel(self.timer.take());
        }
    }

    /// What a run that cron started does with what it saw: queues of its own that have due jobs are answered, the rest is
    /// armed for, except what belongs to another engine that holds the pump lease.
    fn look(
        &mut self,
        base: &mut Base,
        shard: Shard,
        (time, alone): (UnixMicros, bool),
        agenda: Vec<(QueueName, UnixMs)>,
        looked: Vec<(QueueName, Option<UnixMs>)>,
    ) -> Vec<QueueName> {
        let now = time.floor_ms();
        let is_cut = agenda.len() == usize::from(ENTRIES);
        let last = agenda.last().filter(|_| is_cut).and_then(|(_, at)| base.clock.ask_at(base.now, *at));
        let mut next = LiteMap::new();
        for (queue, at) in agenda {
            next.insert(queue, at);
        }
        if !alone {
            next.retain(|queue, _| looked.iter().any(|(own, _)| own == queue));
        }
        let mut ready = Vec::new();
        for (queue, first) in looked {
            match first {
                Some(due) if due <= now => {
                    next.remove(&queue);
                    ready.push(queue);
                }
                Some(due) => {
                    next.entry(queue).and_modify(|at| *at = due.min(*at)).or_insert(due);
                }
                None => {}
            }
        }
        self.arm(base, &next.into_tuple_vec());
        self.timer = last.map(|at| base.wheel.insert(at.max(base.now + STUCK_MS), Timer::Peek(shard)));
        ready
    }

    /// Arms a timer for each entry; if there may be more, answers when the last one is due.
    fn arm(&mut self, base: &mut Base, agenda: &[(QueueName, UnixMs)]) -> Option<Millis> {
        let mut last = None;
        for (queue, at) in agenda {
            if let Some(at) = base.clock.ask_at(base.now, *at) {
                last = Some(at);
                let key = base.wheel.insert(at, Timer::Tend(queue.clone()));
                self.entries.insert(queue.clone(), key);
            }
        }
        last.filter(|_| agenda.len() == usize::from(ENTRIES))
    }
}

fn all(shards: Shards) -> LiteMap<Shard, Tending> {
    let mut all = LiteMap::new();
    for shard in shards.iter() {
        all.insert(shard, Tending::default());
    }
    all
}

/// The queues of a shard whose jobs are managed here.
fn subscribed(base: &Base, shard: Shard) -> Vec<QueueName> {
    let queues = base.config.subscriptions.iter().map(|subscription| &subscription.queue);
    queues.filter(|queue| base.config.shards.of(queue) == shard).cloned().collect()
}

fn standby(base: &Base, holder: Option<(Identity, UnixMs)>) -> Millis {
    let end = holder.and_then(|(_, until)| base.clock.ask_at(base.now, until));
    let longest = base.now + base.config.pump_lease_ms;
    end.map_or(longest, |end| end.min(longest)).max(base.now + STUCK_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Credit, Engine, Subscription, UnixMicros, Wakeup};

    #[test]
    fn who_has_drained_asks_for_no_lease_any_more() {
        let config = Config { pump: Pumping::Always, ..Config::default() };
        let mut engine = Engine::new(config, Identity(7), Millis(0)).unwrap();
        engine.drain(Millis(0));
        assert!(engine.is_drained());
        assert!(engine.poll_transmit(Credit::UNLIMITED).is_none());
    }

    /// A worker that holds the pump lease and has a slot free asks a queue whose time has come with a reserve, which ends
    /// no TTL and no retention: it asked again at once, for ever.
    #[test]
    fn what_a_reserve_leaves_overdue_is_tended() {
        let queue: QueueName = "orders".parse().unwrap();
        let config = Config {
            pump: Pumping::Always,
            subscriptions: alloc::vec![Subscription { queue: queue.clone(), weight: 1, max: 1 }],
            slots: 1,
            ..Config::default()
        };
        let mut engine = Engine::new(config, Identity(7), Millis(0)).unwrap();
        let (mut now, mut tended, mut reserves) = (Millis(0), 0, 0);
        for _ in 0..20 {
            while let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) {
                let time = UnixMicros(1_760_000_000_000_000 + now.0 * 1_000);
                let overdue = (tended == 0).then_some(UnixMs(1_760_000_000_000 - 5));
                let (ticket, mut replies) = (transmit.ticket, alloc::vec::Vec::new());
                for command in transmit.commands {
                    replies.push(match command {
                        Command::Peek { engine, .. } => Reply::Peeked {
                            firsts: Vec::new(),
                            time,
                            holder: Some((*engine, time.floor_ms() + 30_000)),
                            agenda: overdue.map(|at| (queue.clone(), at)).into_iter().collect(),
                        },
                        Command::Tend { .. } => {
                            tended += 1;
                            Reply::Tended {
                                time,
                                ended: 0,
                                expired: 1,
                                purged: 0,
                                forwarded: 0,
                                next: None,
                                more: false,
                                forward: None,
                            }
                        }
                        _ => {
                            reserves += 1;
                            Reply::Granted {
                                time,
                                fence: crate::Fence(1),
                                lease_end: time.floor_ms() + 30_000,
                                backoff: None,
                                jobs: alloc::vec::Vec::new(),
                                next: overdue,
                                more: false,
                                open: true,
                            }
                        }
                    });
                }
                engine.handle_replies(now, ticket, replies);
            }
            while engine.poll_event().is_some() {}
            now = Millis(now.0 + 10);
            engine.handle_timeout(now);
        }
        assert_eq!(tended, 1);
        assert!(reserves <= 3, "{reserves} reserves in 200 ms");
    }

    #[test]
    fn numbers_of_any_size_are_told() {
        let config = Config { pump: Pumping::Always, ..Config::default() };
        let mut engine = Engine::new(config, Identity(7), Millis(0)).unwrap();
        engine.handle_wakeup(Millis(0), Wakeup::Ready("orders".parse().unwrap()));
        let transmit = engine.poll_transmit(Credit::UNLIMITED).expect("a transmit");
        let (ticket, time) = (transmit.ticket, UnixMicros(1_760_000_000_000_000));
        let replies = transmit.commands.iter().map(|command| match command {
            Command::Peek { .. } => {
                Reply::Peeked { time, holder: None, agenda: alloc::vec::Vec::new(), firsts: Vec::new() }
            }
            Command::Open { shards } => Reply::Opened { time, layout: 1, shards: *shards, born: time },
            _ => Reply::Tended {
                time,
                ended: u64::MAX,
                expired: 1,
                purged: 0,
                forwarded: 0,
                next: None,
                more: false,
                forward: None,
            },
        });
        let replies: alloc::vec::Vec<Reply> = replies.collect();
        engine.handle_replies(Millis(1), ticket, replies);
        let event = engine.poll_event();
        assert!(matches!(event, Some(Event::Tended { ended: u64::MAX, .. })), "{event:?}");
    }
}
