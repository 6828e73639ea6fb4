use alloc::collections::VecDeque;
use alloc::vec::Vec;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::base::{Base, BatchId, Timer};
use super::consumer::Consumer;
use super::flight::{Batch, Flights, Landed, Lane};
use super::set::Set;
use super::window::Window;
use crate::{
    Answer, Command, Event, ExtendOutcome, Fault, Fence, Held, JobId, Key, Millis, QueueName, Reply,
    SettleOutcome, Settlement, Shard, Token,
};

/// Ends and renews leases, managed and foreign, coalesced in lanes a queue.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Settler {
    settles: LiteMap<QueueName, Leases<Settlement>>,
    extends: LiteMap<(QueueName, u64), Leases<()>>,
    idle_settles: Set<QueueName>,
    idle_extends: Set<(QueueName, u64)>,
    /// A lane can send what does not wait for company.
    urgent: bool,
    callers: Window<Token, Key>,
    asks: usize,
}

/// What waits and what flies in a lane.
#[derive(Serialize, Deserialize)]
struct Leases<T> {
    pending: VecDeque<(JobId, Fence, T, Whose, Millis)>,
    /// Somebody waits for one of them, or it makes a job due, or they fill a batch.
    urgent: bool,
    flying: Option<(BatchId, Vec<Whose>)>,
}

/// Who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Whose {
    Held(Held),
    Caller(Token),
    Nobody,
}

/// What became of a renewal of a managed job.
pub(super) struct Renewal {
    pub(super) held: Held,
    pub(super) became: Renewed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewed {
    /// The new lease counts from then.
    Since(Millis),
    Lost,
    /// Nobody knows: it is tried again, while the lease lasts.
    Unknown,
}

impl<T> Default for Leases<T> {
    fn default() -> Leases<T> {
        Leases { pending: VecDeque::new(), urgent: false, flying: None }
    }
}

impl Settler {
    pub(super) fn settle(
        &mut self,
        base: &Base,
        queue: &QueueName,
        (id, fence): (JobId, Fence),
        settlement: Settlement,
        whose: Whose,
    ) {
        let lane = self.settles.entry(queue.clone()).or_default();
        let can_wait = settlement == Settlement::Ack && matches!(whose, Whose::Held(_));
        lane.pending.push_back((id, fence, settlement, whose, base.now));
        let is_full = lane.pending.len() >= base.config.reserve_max.into();
        lane.urgent |= is_full || !(can_wait || base.is_thrifty());
        if lane.flying.is_none() {
            self.urgent |= lane.urgent;
            self.idle_settles.insert(queue.clone());
        }
    }

    pub(super) fn extend(
        &mut self,
        base: &Base,
        queue: &QueueName,
        (id, fence): (JobId, Fence),
        lease_ms: u64,
        whose: Whose,
    ) {
        let key = (queue.clone(), lease_ms);
        let lane = self.extends.entry(key.clone()).or_default();
        lane.pending.push_back((id, fence, (), whose, base.now));
        if lane.flying.is_none() {
            self.idle_extends.insert(key);
        }
    }

    /// A caller waits for the answer until `timeout_ms` have passed.
    pub(super) fn await_answer(&mut self, base: &mut Base, token: Token, timeout_ms: u64) {
        let deadline = base.after(timeout_ms, Timer::AskDeadline(token));
        self.callers.insert(token, deadline);
        self.asks += 1;
    }

    /// How many asks are in hand, answered and forgotten ones included.
    pub(super) fn asks(&self) -> usize {
        self.asks
    }

    pub(super) fn is_empty(&self) -> bool {
        self.settles.values().all(Leases::is_empty) && self.extends.values().all(Leases::is_empty)
    }

    /// The shards that get verdicts which are here, or on their way.
    pub(super) fn shards(&self, base: &Base) -> Set<Shard> {
        let queues = self.settles.iter().filter(|(_, lane)| !lane.is_empty());
        queues.map(|(queue, _)| base.config.shards.of(queue)).collect()
    }

    fn under_way(&self, base: &Base) -> Set<Shard> {
        let queues = self.settles.iter().filter(|(_, lane)| lane.flying.is_some());
        queues.map(|(queue, _)| base.config.shards.of(queue)).collect()
    }

    /// A settle tidies where the engine's last lease of a queue ends. Verdicts fewer than `least` wait for others; where
    /// round trips are `counted`, also for those of their shard that are under way, since what comes behind these will
    /// have to follow. What waits for company travels when it `may_leave`, or before whatever
    /// else is ready for its shard, if no more jobs of its queue run than wait.
    pub(super) fn form(
        &mut self,
        base: &mut Base,
        flights: &mut Flights,
        counted: bool,
        least: usize,
        may_leave: bool,
        consumer: &Consumer,
    ) {
        for key in core::mem::take(&mut self.idle_extends) {
            let Some(lane) = self.extends.get_mut(&key) else { continue };
            let (mut leases, mut whose) = (Vec::new(), Vec::new());
            for (id, fence, (), who, _) in lane.take() {
                leases.push((id, fence));
                whose.push(who);
            }
            if leases.is_empty() {
                self.extends.remove(&key);
                continue;
            }
            let (queue, lease_ms) = key;
            let command = Command::Extend { queue: queue.clone(), lease_ms, leases };
            let resend_ms = lease_ms.min(base.config.resend_ms);
            lane.flying =
                Some((flights.submit(base, Lane::Extend(queue, lease_ms), command, resend_ms), whose));
        }
        let under_way = if counted { self.under_way(base) } else { Set::default() };
        if !core::mem::take(&mut self.urgent)
            && !may_leave
            && !flights.any_ready()
            && !self.idle_settles.is_empty()
        {
            base.wait_for_gap();
            return;
        }
        for queue in core::mem::take(&mut self.idle_settles) {
            let Some(lane) = self.settles.get_mut(&queue) else { continue };
            let rides = || {
                flights.is_ready(base.config.shards.of(&queue))
                    && consumer.running(&queue) <= lane.pending.len()
            };
            if !may_leave && !lane.urgent && !lane.pending.is_empty() && !rides() {
                self.idle_settles.insert(queue);
                base.wait_for_gap();
                continue;
            }
            let waits = lane.pending.len() < least || under_way.contains(&base.config.shards.of(&queue));
            if waits && !lane.pending.is_empty() {
                self.idle_settles.insert(queue);
                continue;
            }
            let (mut leases, mut whose) = (Vec::new(), Vec::new());
            for (id, fence, mut settlement, who, called) in lane.take() {
                settlement.elapse(base.now.since(called).saturating_sub(1));
                leases.push((id, fence, settlement));
                whose.push(who);
            }
            lane.urgent &= !lane.pending.is_empty();
            if leases.is_empty() {
                self.settles.remove(&queue);
                continue;
            }
            let tidy = lane.pending.is_empty() && consumer.is_done_with(base, &queue);
            let command = Command::Settle { queue: queue.clone(), tidy, leases };
            let batch = flights.submit_first(base, Lane::Settle(queue), command, base.config.resend_ms);
            base.has_left();
            lane.flying = Some((batch, whose));
        }
    }

    pub(super) fn handle_settled(&mut self, base: &mut Base, queue: &QueueName, landed: Landed) {
        let Some(lane) = self.settles.get_mut(queue) else { return };
        let Some((_, whose)) = lane.flying.take() else { return };
        if lane.pending.is_empty() {
            self.settles.remove(queue);
        } else {
            self.urgent |= lane.urgent;
            self.idle_settles.insert(queue.clone());
        }
        let Landed { batch, reply } = landed;
        let Command::Settle { leases, .. } = &batch.command else { return };
        match reply {
            Some(Reply::Settled { outcomes, .. }) => {
                for ((who, (_, _, settlement)), outcome) in whose.into_iter().zip(leases).zip(outcomes) {
                    let outcome = after_loss(outcome, &batch, settlement);
                    match who {
                        Whose::Held(held) => base.events.push_back(Event::Settled { held, outcome }),
                        Whose::Caller(token) => self.answer(base, token, Ok(Answer::Settled(outcome))),
                        Whose::Nobody => {}
                    }
                }
            }
            other => self.fail(base, whose, &batch, other),
        }
    }

    pub(super) fn handle_extended(
        &mut self,
        base: &mut Base,
        key: (QueueName, u64),
        landed: Landed,
    ) -> Vec<Renewal> {
        let Some((_, whose)) = self.extends.get_mut(&key).and_then(|lane| lane.flying.take()) else {
            return Vec::new();
        };
        self.idle_extends.insert(key);
        let Landed { batch, reply } = landed;
        let mut renewals = Vec::new();
        match reply {
            Some(Reply::Extended { outcomes, lease_end, .. }) => {
                for (who, outcome) in whose.into_iter().zip(outcomes) {
                    match who {
                        Whose::Held(held) => {
                            let since = batch.first_sent.filter(|_| outcome == ExtendOutcome::Extended);
                            renewals
                                .push(Renewal { held, became: since.map_or(Renewed::Lost, Renewed::Since) });
                        }
                        Whose::Caller(token) => {
                            self.answer(base, token, Ok(Answer::Extended(outcome, lease_end)));
                        }
                        Whose::Nobody => {}
                    }
                }
            }
            other => {
                let managed = whose.iter().filter_map(|who| match who {
                    Whose::Held(held) => Some(Renewal { held: *held, became: Renewed::Unknown }),
                    Whose::Caller(_) | Whose::Nobody => None,
                });
                renewals.extend(managed);
                self.fail(base, whose, &batch, other);
            }
        }
        renewals
    }

    fn fail(&mut self, base: &mut Base, whose: Vec<Whose>, batch: &Batch, reply: Option<Reply>) {
        let fault = batch.fault(reply);
        let mut told = false;
        for who in whose {
            if let Whose::Caller(token) = who {
                self.answer(base, token, Err(fault.clone()));
                continue;
            }
            if !core::mem::replace(&mut told, true) {
                base.events.push_back(Event::Fault(fault.clone()));
            }
            if let (Whose::Held(held), Command::Settle { .. }) = (who, &batch.command) {
                base.events.push_back(Event::Unsettled(held));
            }
        }
    }

    fn answer(&mut self, base: &mut Base, token: Token, answer: Result<Answer, Fault>) {
        self.asks -= 1;
        if let Some(deadline) = self.callers.remove(&token) {
            base.wheel.cancel(deadline);
            base.answer(token, answer);
        }
    }

    /// Who waits for an answer, and from now on for none here: what was asked goes on.
    pub(super) fn take_callers(&mut self) -> impl Iterator<Item = Token> {
        let mut callers = core::mem::take(&mut self.callers);
        core::iter::from_fn(move || callers.pop_first()).map(|(token, _)| token)
    }

    /// What was asked goes on; whether it was sent decides what the caller is told.
    pub(super) fn handle_deadline(&mut self, base: &mut Base, flights: &mut Flights, token: Token) -> bool {
        if self.callers.remove(&token).is_none() {
            return false;
        }
        let mut unsent = None;
        for (queue, lane) in self.settles.iter_mut() {
            unsent = unsent.or_else(|| lane.withdraw(base, flights, token));
            if lane.flying.is_none() {
                self.idle_settles.insert(queue.clone());
            }
        }
        for (key, lane) in self.extends.iter_mut() {
            unsent = unsent.or_else(|| lane.withdraw(base, flights, token));
            if lane.flying.is_none() {
                self.idle_extends.insert(key.clone());
            }
        }
        self.asks -= usize::from(unsent.is_some());
        base.answer(token, Err(unsent.unwrap_or(Fault::Unknown)));
        true
    }

    pub(super) fn forget(&mut self, base: &mut Base, token: Token) -> bool {
        let deadline = self.callers.remove(&token);
        base.cancel(deadline);
        deadline.is_some()
    }
}

impl<T> Leases<T> {
    fn take(&mut self) -> impl Iterator<Item = (JobId, Fence, T, Whose, Millis)> + '_ {
        let count = self.pending.len().min(Command::JOBS_MAX);
        self.pending.drain(..count)
    }

    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.flying.is_none()
    }

    /// Takes an ask back if it was certainly never carried out, and says why it was not.
    fn withdraw(&mut self, base: &mut Base, flights: &mut Flights, token: Token) -> Option<Fault> {
        let batch = self.flying.as_ref().map(|(batch, _)| *batch);
        if let Some(place) = self.pending.iter().position(|(_, _, _, who, _)| *who == Whose::Caller(token)) {
            self.pending.remove(place);
            return Some(Fault::NotSent(batch.and_then(|batch| flights.batch(batch)?.refusal)));
        }
        let (batch, whose) = self.flying.as_mut()?;
        let place = whose.iter().position(|who| *who == Whose::Caller(token))?;
        let waiting = flights.waiting_mut(*batch).filter(|batch| !batch.maybe_ran)?;
        waiting.drop_lease(place);
        let why = waiting.refusal;
        whose.remove(place);
        if whose.is_empty() {
            flights.drop_batch(base, *batch);
            self.flying = None;
        }
        Some(Fault::NotSent(why))
    }
}

impl Settlement {
    pub(super) fn elapse(&mut self, ms: u64) {
        if let Settlement::Nack { after_ms, .. } | Settlement::Snooze { after_ms } = self {
            *after_ms = after_ms.saturating_sub(ms);
        }
    }
}

/// A verdict that was lost on its way may have been carried out: then the job is gone, or shows the verdict.
fn after_loss(outcome: SettleOutcome, batch: &Batch, settlement: &Settlement) -> SettleOutcome {
    match outcome {
        SettleOutcome::Gone if batch.maybe_ran && *settlement == Settlement::Ack => SettleOutcome::Done,
        SettleOutcome::Repeat if batch.maybe_ran => SettleOutcome::Done,
        other => other,
    }
}

impl Batch {
    /// Takes a lease out of a batch that was not carried out.
    fn drop_lease(&mut self, place: usize) {
        match &mut self.command {
            Command::Settle { leases, .. } => drop(leases.remove(place)),
            Command::Extend { leases, .. } => drop(leases.remove(place)),
            _ => {}
        }
    }

    /// Why a batch has no proper answer.
    pub(super) fn fault(&self, reply: Option<Reply>) -> Fault {
        match reply {
            Some(Reply::Broken(why)) => Fault::Broken(why),
            Some(Reply::Gated { gate, .. }) => self.command.queue().map_or_else(Fault::unexpected, |queue| {
                let queue = queue.clone();
                Fault::Gated { queue, gate }
            }),
            Some(_) => Fault::unexpected(),
            None if self.maybe_ran => Fault::Unknown,
            None => Fault::NotSent(self.refusal),
        }
    }
}

/// When a lease granted or renewed by a request first sent then is to be renewed.
pub(super) fn renew_at(since: Millis, lease_ms: u64) -> Millis {
    since + lease_ms / 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Config, Credit, Engine, Identity, Lease, Request, Ticket, Verdict};

    fn asks(engine: &mut Engine, token: u64) -> bool {
        let (queue, id) = ("orders".parse().unwrap(), "one".parse().unwrap());
        let lease = Lease { queue, id, fence: Fence(token), retry_ms: 0 };
        let ask = Ask::Settle { lease, verdict: Verdict::Ack };
        engine.request(Millis(0), Token(token), Request { ask, timeout_ms: 30_000 }).is_ok()
    }

    fn sent(engine: &mut Engine) -> Ticket {
        engine.poll_transmit(Credit::UNLIMITED).expect("a transmit").ticket
    }

    fn engine() -> Engine {
        let config = Config { pending_requests: 2, ..Config::default() };
        Engine::new(config, Identity(7), Millis(0)).unwrap()
    }

    #[test]
    fn forgetting_makes_no_room_for_leases_still_to_be_settled() {
        let mut engine = engine();
        for token in 1..=2 {
            assert!(asks(&mut engine, token));
            engine.forget(Millis(0), Token(token));
        }
        assert!(!asks(&mut engine, 3));
        let (ticket, outcomes) = (sent(&mut engine), Vec::from([SettleOutcome::Done; 2]));
        engine.handle_replies(Millis(1), ticket, [Reply::Settled { time: None, outcomes }]);
        assert!(asks(&mut engine, 3) && asks(&mut engine, 4));
    }

    #[test]
    fn who_is_left_out_of_an_answer_is_told_that_it_is_broken() {
        let mut engine = engine();
        assert!(asks(&mut engine, 1) && asks(&mut engine, 2));
        for _ in 0..2 {
            let (ticket, outcomes) = (sent(&mut engine), Vec::from([SettleOutcome::Done]));
            engine.handle_replies(Millis(1), ticket, [Reply::Settled { time: None, outcomes }]);
        }
        for token in 1..=2 {
            let event = engine.poll_event();
            let Some(Event::Answered { token: told, answer: Err(Fault::Broken(_)) }) = event else {
                panic!("{event:?}")
            };
            assert_eq!(told, Token(token));
        }
        engine.drain(Millis(1));
        assert!(engine.is_drained());
    }
}
