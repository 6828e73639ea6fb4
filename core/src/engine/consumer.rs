use alloc::vec::Vec;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::asked::{Asked, Promise};
use super::base::{Base, STUCK_MS, Timer};
use super::flight::{Batch, Flights, Landed, Lane};
use super::grant::Granted;
use super::held::{HeldJob, HeldJobs};
use super::purse::Purse;
use super::set::Set;
use super::settler::{Renewal, Renewed, Settler, Whose, renew_at};
use super::takes::Takes;
use super::turns::Turns;
use crate::{
    Backlogged, ClockModel, Command, Event, Fault, Held, Job, JobId, Millis, Pumping, QueueName, Refusal,
    Reply, Session, Settlement, Shard, Shards, Take, Token, UnixMicros, UnixMs, Verdict,
};

const STRIDE: u64 = 1 << 20;
const SOON_MS: u64 = 1_000;

/// Asks queues for due jobs: for the slots of managed jobs, and for takes. What is free, or wanted, is promised to at
/// most one reserve at a time.
#[derive(Serialize, Deserialize)]
pub(super) struct Consumer {
    queues: LiteMap<QueueName, Asked>,
    turns: Turns,
    leaving: Set<QueueName>,
    takes: Takes,
    held: HeldJobs,
    promised: u16,
    served: u64,
}

/// What a reserve's reply means for whoever tends the queue's shard.
pub(super) struct Learnt {
    pub(super) next: Option<UnixMs>,
    pub(super) open: bool,
    pub(super) more: bool,
    pub(super) time: UnixMicros,
}

impl Consumer {
    pub(super) fn new(base: &Base) -> Consumer {
        let mut queues: LiteMap<QueueName, Asked> = LiteMap::new();
        for subscription in &base.config.subscriptions {
            let asked =
                Asked { subscription: Some((subscription.weight, subscription.max)), ..Asked::default() };
            queues.insert(subscription.queue.clone(), asked);
        }
        let mut consumer = Consumer {
            queues,
            turns: Turns::default(),
            leaving: Set::default(),
            takes: Takes::default(),
            held: HeldJobs::default(),
            promised: 0,
            served: 0,
        };
        if base.config.pump != Pumping::WhenDue {
            consumer.hunger_all();
        }
        consumer
    }

    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    pub(super) fn in_hand(&mut self) -> impl Iterator<Item = (Held, &QueueName, &JobId)> {
        self.held.iter_mut().map(|(held, job)| (held, &job.queue, &job.id))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.held.len() == 0
            && self.takes.is_empty()
            && self.queues.values().all(|asked| asked.flying.is_none() && !asked.registered)
    }

    /// The queue may have due jobs.
    pub(super) fn hunger(&mut self, queue: &QueueName) {
        if let Some(asked) = self.queues.get_mut(queue).filter(|asked| !asked.hungry) {
            asked.hungry = true;
            if asked.flying.is_none() {
                self.turns.insert(asked.pass, queue.clone(), asked.weight());
            }
        }
    }

    /// After a gap in what notifications told.
    pub(super) fn hunger_all(&mut self) {
        let queues: Vec<QueueName> = self.queues.keys().cloned().collect();
        for queue in &queues {
            self.hunger(queue);
        }
    }

    fn sate(&mut self, queue: &QueueName) {
        if let Some(asked) = self.queues.get_mut(queue).filter(|asked| asked.hungry) {
            asked.hungry = false;
            if asked.flying.is_none() {
                self.turns.remove(asked.pass, queue);
            }
        }
    }

    pub(super) fn take(&mut self, base: &mut Base, token: Token, take: Take) -> Result<(), Backlogged<Take>> {
        let queues = take.queues.clone();
        self.takes.insert(base, token, take)?;
        for queue in queues {
            self.queues.entry(queue.clone()).or_default();
            self.hunger(&queue);
        }
        Ok(())
    }

    /// Whether a take waits for jobs to be due: one that is served at once does not.
    pub(super) fn has_waiting_takes(&self) -> bool {
        self.takes.any_waits()
    }

    pub(super) fn handle_take_deadline(&mut self, base: &mut Base, flights: &Flights, token: Token) {
        let trouble = self.trouble(flights, token);
        for queue in self.takes.handle_deadline(base, token, trouble) {
            self.forget_idle(base, &queue);
        }
    }

    /// Why no reserve of a take's queues is answered, as far as that is known.
    fn trouble(&self, flights: &Flights, token: Token) -> Option<Refusal> {
        let queues = self.takes.queues(token).iter().filter_map(|queue| self.queues.get(queue));
        let mut flying = queues.filter_map(|asked| flights.batch(asked.flying.as_ref()?.0)?.refusal);
        flying.next()
    }

    pub(super) fn forget(&mut self, base: &mut Base, token: Token) {
        for queue in self.takes.forget(base, token) {
            self.forget_idle(base, &queue);
        }
    }

    pub(super) fn drain(&mut self, base: &mut Base) {
        self.takes.drain(base);
        let queues: Vec<QueueName> = self.queues.keys().cloned().collect();
        for queue in &queues {
            self.sate(queue);
        }
        self.leaving.extend(self.queues.keys().cloned());
    }

    /// How many managed jobs of a queue are in hand.
    pub(super) fn running(&self, queue: &QueueName) -> usize {
        self.queues.get(queue).map_or(0, |asked| asked.running.into())
    }

    pub(super) fn is_subscribed(&self, queue: &QueueName) -> bool {
        self.queues.get(queue).is_some_and(|asked| asked.subscription.is_some())
    }

    /// Whether a reserve of this queue would serve somebody now, and does if the queue has due jobs.
    pub(super) fn wants(&self, base: &Base, queue: &QueueName) -> bool {
        let Some(asked) = self.queues.get(queue) else { return false };
        !base.draining && (self.free_slots(base, asked) > 0 || self.takes.any_for(queue))
    }

    pub(super) fn is_closed(&self, queue: &QueueName) -> bool {
        self.queues.get(queue).is_some_and(|asked| asked.closed)
    }

    pub(super) fn handle_poll(&mut self, base: &mut Base, queue: &QueueName) {
        let Some(asked) = self.queues.get_mut(queue) else { return };
        if asked.subscription.is_none() && !self.takes.any_names(queue) {
            asked.poll = None;
            self.leaving.insert(queue.clone());
        } else {
            asked.poll = Some(base.after(base.config.poll_ms, Timer::Poll(queue.clone())));
            self.hunger(queue);
        }
    }

    fn free_slots(&self, base: &Base, asked: &Asked) -> u16 {
        self.free(base).min(asked.room())
    }

    fn free(&self, base: &Base) -> u16 {
        let running = u16::try_from(self.held.len()).unwrap_or(u16::MAX);
        base.config.slots.saturating_sub(running).saturating_sub(self.promised)
    }

    /// `purse` says what can be paid for beside what is promised. Where round trips are counted, no fewer jobs are asked for
    /// than half of what one may bring while others are in hand: a job at a time, as slots become free, would cost a round
    /// trip each. Elsewhere it is so while a reserve is under way, for a gap at most, and `leaves` says whether what waits for
    /// company leaves now.
    pub(super) fn form(
        &mut self,
        base: &mut Base,
        flights: &mut Flights,
        purse: impl Fn(&Consumer) -> Purse,
        leaves: bool,
    ) {
        self.leave(base, flights);
        if base.draining {
            return;
        }
        let saves = base.allowance.is_some() && (self.held.len() > 0 || self.promised > 0);
        let (free, weights, may_ask) = (self.free(base), self.turns.weights(), base.asks());
        let slots_max = if base.allowance.is_some() { 0 } else { base.config.slots };
        let mut passed = 0;
        while let Some(queue) = self.turns.get(passed).cloned() {
            if self.takes.is_empty() && self.free(base) == 0 {
                break;
            }
            passed += 1;
            let Some(asked) = self.queues.get(&queue) else { continue };
            let quantum = self.turns.quantum(base.now, asked.weight(), weights, (free, slots_max));
            let quantum = quantum.min(base.config.reserve_max).min(asked.room());
            let slots = self.free(base).min(quantum);
            let waits = !leaves && base.is_thrifty() && !asked.more;
            let is_few = slots < quantum && self.promised > 0 && !may_ask;
            let affordable = purse(self).affords(base.config.reserve_max);
            let wanted = self.takes.group_for(&queue, affordable);
            let takes_turn = slots == 0 || (asked.takes_next && wanted.is_some());
            match wanted {
                Some(group) if takes_turn => {
                    let count = group.tokens.iter().map(|(_, count)| count).sum();
                    self.ask(base, flights, &queue, count, group.lease_ms, Promise::Takes(group.tokens));
                    passed -= 1;
                }
                _ if slots.min(affordable) > 0 => {
                    let count = slots.min(affordable);
                    if saves && u32::from(count) * 2 < u32::from(base.config.reserve_max.min(affordable)) {
                        continue;
                    }
                    if waits || is_few {
                        base.wait_for_gap();
                        if is_few && self.takes.is_empty() {
                            break;
                        }
                        continue;
                    }
                    self.ask(base, flights, &queue, count, base.config.lease_ms, Promise::Slots(count));
                    passed -= 1;
                }
                _ => {}
            }
        }
    }

    /// How many jobs may come that nobody has delivered yet.
    pub(super) fn promised(&self) -> usize {
        self.queues
            .values()
            .map(|asked| asked.flying.as_ref().map_or(0, |(_, promise)| promise.count()))
            .sum()
    }

    /// How many of the promised jobs are those of reserves that are to be sent again: what another round trip takes from
    /// their deliveries is released when they come.
    pub(super) fn resending(&self, flights: &Flights) -> usize {
        let flying = self.queues.values().filter_map(|asked| asked.flying.as_ref());
        let waiting = flying.filter(|(batch, _)| flights.batch(*batch).is_some_and(Batch::is_to_resend));
        waiting.map(|(_, promise)| promise.count()).sum()
    }

    /// How many reserves under way may bring jobs: each is answered by itself, so the verdicts of one need not be ready
    /// when those of another are.
    pub(super) fn asking(&self) -> usize {
        let flying = self.queues.values().filter_map(|asked| asked.flying.as_ref());
        flying.filter(|(_, promise)| promise.count() > 0).count()
    }

    /// The shards that will get verdicts on jobs in hand.
    pub(super) fn shards(&self, shards: Shards) -> Set<Shard> {
        let queues = self.queues.iter().filter(|(_, asked)| asked.running > 0);
        queues.map(|(queue, _)| shards.of(queue)).collect()
    }

    fn ask(
        &mut self,
        base: &mut Base,
        flights: &mut Flights,
        queue: &QueueName,
        count: u16,
        lease_ms: u64,
        promise: Promise,
    ) {
        self.sate(queue);
        let Some(asked) = self.queues.get_mut(queue) else { return };
        match &promise {
            Promise::Slots(count) => {
                base.has_asked();
                if base.is_thrifty() {
                    base.has_left();
                }
                self.promised += count;
                asked.promised += count;
                asked.takes_next = true;
            }
            Promise::Takes(tokens) => {
                self.takes.promise(tokens);
                asked.takes_next = false;
            }
            Promise::Leave => {}
        }
        asked.pass = asked.pass.max(self.served);
        self.served = asked.pass;
        let session = Session { engine: base.identity, lane: 0, sequence: base.next_sequence() };
        let command = Command::Reserve {
            queue: queue.clone(),
            session,
            count,
            lease_ms,
            max_bytes: base.config.reserve_bytes,
            wakeable: base.wakeable,
        };
        let longest_ms = if count > 0 { lease_ms } else { u64::MAX };
        let resend_ms = base.config.resend_ms.min(longest_ms);
        let batch = flights.submit(base, Lane::Reserve(queue.clone()), command, resend_ms);
        asked.flying = Some((batch, promise));
        if base.config.pump != Pumping::WhenDue {
            asked.poll_after(base, queue, base.config.poll_ms);
        }
    }

    /// Takes the engine off the waiting lists of queues that it asks no more, so that nobody wakes it in vain.
    fn leave(&mut self, base: &mut Base, flights: &mut Flights) {
        for queue in core::mem::take(&mut self.leaving) {
            let Some(asked) = self.queues.get(&queue) else { continue };
            let wanted = !base.draining && (asked.subscription.is_some() || self.takes.any_names(&queue));
            if asked.flying.is_some() && !wanted {
                self.leaving.insert(queue);
            } else if asked.registered && !wanted {
                self.ask(base, flights, &queue, 0, base.config.lease_ms, Promise::Leave);
            } else {
                self.forget_idle(base, &queue);
            }
        }
    }

    pub(super) fn handle_landed(
        &mut self,
        base: &mut Base,
        settler: &mut Settler,
        queue: &QueueName,
        landed: Landed,
    ) -> Option<Learnt> {
        let asked = self.queues.get_mut(queue)?;
        let (_, promise) = asked.flying.take()?;
        let count = match &promise {
            Promise::Slots(count) => {
                self.promised -= count;
                asked.promised -= count;
                *count
            }
            Promise::Takes(tokens) => tokens.iter().map(|(_, count)| count).sum(),
            Promise::Leave => 0,
        };
        let Landed { batch, reply } = landed;
        let Command::Reserve { lease_ms, wakeable, .. } = batch.command else { return None };
        let Some(Reply::Granted { time, fence: _, lease_end: lease_ends, backoff, jobs, next, more, open }) =
            reply
        else {
            asked.registered |= batch.maybe_ran && wakeable;
            if asked.hungry {
                self.turns.insert(asked.pass, queue.clone(), asked.weight());
            }
            return self.ask_again(base, queue, &promise, &batch.fault(reply));
        };
        self.takes.is_answered(queue);
        let short = jobs.len() < usize::from(count) && !more;
        asked.registered = (asked.registered || (short && wakeable)) && !matches!(promise, Promise::Leave);
        asked.closed = !open;
        if let Some((weight, _)) = asked.subscription {
            asked.pass += jobs.len() as u64 * STRIDE / u64::from(weight);
        }
        (asked.more, asked.next) = (!short, next);
        if asked.hungry {
            self.turns.insert(asked.pass, queue.clone(), asked.weight());
        }
        if !short {
            self.hunger(queue);
        }
        let sent = batch.first_sent.unwrap_or(base.now);
        let granted =
            Granted { lease_ms, lease_end: ClockModel::lease_end(sent, lease_ms), lease_ends, backoff, time };
        let jobs: Vec<Job> =
            jobs.into_iter().filter_map(|grant| granted.read(base, settler, queue, grant)).collect();
        let jobs = self.still_held(base, settler, &granted, jobs);
        match promise {
            Promise::Slots(_) => self.run(base, queue, jobs, sent, &granted),
            Promise::Takes(tokens) => {
                self.hand_out(base, settler, queue, &tokens, jobs);
                self.forget_idle(base, queue);
            }
            Promise::Leave => self.forget_idle(base, queue),
        }
        (count > 0).then_some(Learnt { next, open, more, time })
    }

    /// The reserve got no proper answer; what it granted, if it ran, is left to the leases.
    fn ask_again(
        &mut self,
        base: &mut Base,
        queue: &QueueName,
        promise: &Promise,
        fault: &Fault,
    ) -> Option<Learnt> {
        if let Promise::Takes(tokens) = promise {
            self.takes.unpromise(tokens, fault);
        }
        if let Some(asked) = self.queues.get_mut(queue).filter(|_| matches!(promise, Promise::Leave)) {
            asked.registered = false;
        } else if matches!(fault, Fault::Broken(_) | Fault::Gated { .. }) {
            base.events.push_back(Event::Fault(fault.clone()));
            if let Some(asked) = self.queues.get_mut(queue) {
                asked.poll_after(base, queue, STUCK_MS);
            }
        } else {
            self.hunger(queue);
        }
        self.forget_idle(base, queue);
        None
    }

    /// The jobs, unless their leases ended before the answer came, this engine is to take nothing more, or it cannot pay
    /// for their delivery: then they are released, and the queue is asked again.
    fn still_held(
        &mut self,
        base: &mut Base,
        settler: &mut Settler,
        granted: &Granted,
        mut jobs: Vec<Job>,
    ) -> Vec<Job> {
        let most = if base.draining || base.now >= granted.lease_end { 0 } else { base.deliverable() };
        let surplus = jobs.split_off(most.min(jobs.len()));
        base.deliver(jobs.len());
        for Job { lease, .. } in surplus {
            let release = Settlement::Release { after_ms: 0 };
            settler.settle(base, &lease.queue, (lease.id, lease.fence), release, Whose::Nobody);
            self.hunger(&lease.queue);
        }
        jobs
    }

    fn run(&mut self, base: &mut Base, queue: &QueueName, jobs: Vec<Job>, sent: Millis, granted: &Granted) {
        if let Some(asked) = self.queues.get_mut(queue) {
            asked.running += u16::try_from(jobs.len()).unwrap_or(u16::MAX);
        }
        for mut job in jobs {
            let held = self.held.insert(HeldJob {
                queue: queue.clone(),
                id: job.lease.id.clone(),
                fence: job.lease.fence,
                retry_ms: job.lease.retry_ms,
                lease_end: granted.lease_end,
                renew: None,
                end: None,
            });
            if let Some(kept) = self.held.get_mut(held) {
                if base.allowance.is_none() {
                    let at = renew_at(sent, granted.lease_ms);
                    kept.renew = Some(base.wheel.insert(at, Timer::Renew(held)));
                }
                kept.end = Some(base.wheel.insert(granted.lease_end, Timer::LeaseEnd(held)));
            }
            job.held = Some(held);
            base.events.push_back(Event::Run(job));
        }
    }

    fn hand_out(
        &mut self,
        base: &mut Base,
        settler: &mut Settler,
        queue: &QueueName,
        tokens: &[(Token, u16)],
        jobs: Vec<Job>,
    ) {
        let handed = self.takes.hand_out(base, queue, tokens, jobs);
        for Job { lease, .. } in handed.unwanted {
            let release = Settlement::Release { after_ms: 0 };
            settler.settle(base, queue, (lease.id, lease.fence), release, Whose::Nobody);
        }
        for next in handed.asking {
            self.hunger(&next);
        }
        for left in handed.left {
            self.forget_idle(base, &left);
        }
    }

    /// A queue that only takes asked is forgotten when none is left, and nobody wakes this engine for it.
    fn forget_idle(&mut self, base: &mut Base, queue: &QueueName) {
        let Some(asked) = self.queues.get_mut(queue) else { return };
        if asked.subscription.is_some() || asked.flying.is_some() || self.takes.any_names(queue) {
            return;
        }
        if asked.hungry {
            asked.hungry = false;
            self.turns.remove(asked.pass, queue);
        }
        if asked.registered {
            if asked.poll.is_none() {
                self.leaving.insert(queue.clone());
            }
        } else if let Some(asked) = self.queues.remove(queue) {
            base.cancel(asked.poll);
        }
    }

    pub(super) fn settle(&mut self, base: &mut Base, settler: &mut Settler, held: Held, verdict: Verdict) {
        let Some(job) = self.release_slot(base, held) else { return };
        let settlement = verdict.settlement(job.retry_ms);
        settler.settle(base, &job.queue, (job.id, job.fence), settlement, Whose::Held(held));
    }

    /// Whether the engine holds no job of the queue and expects none,
    /// and nothing else happens there soon, since who comes for that sees to the agenda.
    pub(super) fn is_done_with(&self, base: &Base, queue: &QueueName) -> bool {
        let (earliest, _) = base.clock.redis_now(base.now).unwrap_or_default();
        let soon = earliest.floor_ms() + SOON_MS;
        self.queues.get(queue).is_some_and(|asked| {
            asked.subscription.is_some()
                && asked.running == 0
                && asked.flying.is_none()
                && !asked.hungry
                && (base.allowance.is_some() || asked.next.is_none_or(|next| next > soon))
                && !self.takes.any_names(queue)
        })
    }

    pub(super) fn handle_renew(&mut self, base: &mut Base, settler: &mut Settler, held: Held) {
        let lease_ms = base.config.lease_ms;
        if let Some(job) = self.held.get_mut(held) {
            job.renew = None;
            settler.extend(base, &job.queue, (job.id.clone(), job.fence), lease_ms, Whose::Held(held));
        }
    }

    pub(super) fn handle_renewed(&mut self, base: &mut Base, renewal: &Renewal) {
        let held = renewal.held;
        let lease_ms = base.config.lease_ms;
        if renewal.became == Renewed::Lost {
            self.abandon(base, held);
            return;
        }
        let Some(job) = self.held.get_mut(held) else { return };
        let Renewed::Since(since) = renewal.became else {
            base.cancel(job.renew.take());
            job.renew = Some(base.after(STUCK_MS.min(lease_ms / 12), Timer::Renew(held)));
            return;
        };
        job.lease_end = job.lease_end.max(ClockModel::lease_end(since, lease_ms));
        base.cancel(job.end.take());
        base.cancel(job.renew.take());
        job.end = Some(base.wheel.insert(job.lease_end, Timer::LeaseEnd(held)));
        job.renew = Some(base.wheel.insert(renew_at(since, lease_ms), Timer::Renew(held)));
    }

    pub(super) fn abandon(&mut self, base: &mut Base, held: Held) {
        if self.release_slot(base, held).is_some() {
            base.events.push_back(Event::Abandon(held));
        }
    }

    /// Redis's clock went forward: leases end so much earlier.
    pub(super) fn shorten_leases(&mut self, base: &mut Base, forward_ms: u64) {
        for (held, job) in self.held.iter_mut() {
            job.lease_end = Millis(job.lease_end.0.saturating_sub(forward_ms));
            if let Some(key) = job.end.take() {
                base.wheel.cancel(key);
            }
            job.end = Some(base.wheel.insert(job.lease_end, Timer::LeaseEnd(held)));
            if let Some(key) = job.renew.take() {
                base.wheel.cancel(key);
                job.renew = Some(base.wheel.insert(base.now, Timer::Renew(held)));
            }
        }
    }

    fn release_slot(&mut self, base: &mut Base, held: Held) -> Option<HeldJob> {
        let mut job = self.held.remove(held)?;
        base.cancel(job.renew.take());
        base.cancel(job.end.take());
        self.turns.count(base.now);
        if let Some(asked) = self.queues.get_mut(&job.queue) {
            asked.running -= 1;
        }
        Some(job)
    }
}
