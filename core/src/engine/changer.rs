use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::base::{Base, BatchId, Timer};
use super::flight::{Batch, Flights, Landed, Lane, shorten};
use super::on_demand::Machine;
use crate::{
    Answer, CancelOutcome, Command, Due, Fault, JobId, Key, Millis, QueueName, Reply, RescheduleOutcome,
    Session, Token, UnixMs,
};

/// Cancels and moves waiting jobs, coalesced in a lane a queue: in the order asked, so a batch is of one kind.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Changer {
    lanes: BTreeMap<QueueName, ChangeLane>,
    idle: BTreeSet<QueueName>,
    callers: BTreeMap<Token, (QueueName, Key)>,
    asks: usize,
}

#[derive(Default, Serialize, Deserialize)]
struct ChangeLane {
    pending: VecDeque<Pending>,
    flying: Option<(BatchId, Vec<Share>)>,
}

#[derive(Serialize, Deserialize)]
struct Pending {
    token: Token,
    change: Change,
    called: Millis,
}

/// How many jobs of a batch, after those before it, one caller asked for.
#[derive(Serialize, Deserialize)]
struct Share {
    token: Token,
    jobs: usize,
}

/// What is to become of waiting jobs.
#[derive(Serialize, Deserialize)]
pub(super) enum Change {
    Cancel(Vec<JobId>),
    Reschedule(Vec<(JobId, Due)>),
}

impl Changer {
    pub(super) fn change(
        &mut self,
        base: &mut Base,
        token: Token,
        queue: QueueName,
        change: Change,
        timeout_ms: u64,
    ) {
        if change.len() == 0 {
            base.answer(token, Ok(change.nothing()));
            return;
        }
        let deadline = base.after(timeout_ms, Timer::AskDeadline(token));
        self.callers.insert(token, (queue.clone(), deadline));
        self.asks += 1;
        let lane = self.lanes.entry(queue.clone()).or_default();
        lane.pending.push_back(Pending { token, change, called: base.now });
        if lane.flying.is_none() {
            self.idle.insert(queue);
        }
    }

    /// How many asks are in hand.
    pub(super) fn len(&self) -> usize {
        self.asks
    }

    fn share<T>(
        &mut self,
        base: &mut Base,
        shares: Vec<Share>,
        outcomes: impl IntoIterator<Item = T>,
        answer: impl Fn(Vec<T>) -> Answer,
    ) {
        let mut outcomes = outcomes.into_iter();
        for Share { token, jobs } in shares {
            let own: Vec<T> = outcomes.by_ref().take(jobs).collect();
            self.answer(base, token, Ok(answer(own)));
        }
    }

    fn answer(&mut self, base: &mut Base, token: Token, answer: Result<Answer, Fault>) {
        self.asks -= 1;
        if let Some((_, deadline)) = self.callers.remove(&token) {
            base.wheel.cancel(deadline);
            base.answer(token, answer);
        }
    }
}

impl Machine for Changer {
    fn form(&mut self, base: &mut Base, flights: &mut Flights) {
        for queue in core::mem::take(&mut self.idle) {
            let Some(lane) = self.lanes.get_mut(&queue) else { continue };
            let Some((change, shares)) = lane.take(base.now) else {
                self.lanes.remove(&queue);
                continue;
            };
            let session = Session { engine: base.identity, lane: 0, sequence: base.next_sequence() };
            let command = change.command(queue.clone(), session);
            let batch = flights.submit(base, Lane::Change(queue), command, base.config.resend_ms);
            lane.flying = Some((batch, shares));
        }
    }

    fn handle_landed(&mut self, base: &mut Base, queue: &QueueName, landed: Landed) {
        let Some((_, shares)) = self.lanes.get_mut(queue).and_then(|lane| lane.flying.take()) else {
            return;
        };
        self.idle.insert(queue.clone());
        let Landed { batch, reply } = landed;
        match reply {
            Some(Reply::Cancelled { outcomes, .. }) => self.share(base, shares, outcomes, Answer::Cancelled),
            Some(Reply::Rescheduled { outcomes, dues, .. }) => {
                let outcomes = outcomes.into_iter().zip(dues);
                self.share(base, shares, outcomes, Answer::Rescheduled);
            }
            other => {
                let fault = match other {
                    Some(Reply::Superseded { .. }) => Fault::Unknown,
                    other => batch.fault(other),
                };
                for share in shares {
                    self.answer(base, share.token, Err(fault.clone()));
                }
            }
        }
    }

    /// The caller is answered. What may have been sent stays in its batch, since a resend carries the same jobs.
    fn handle_deadline(&mut self, base: &mut Base, flights: &mut Flights, token: Token) -> bool {
        let Some((queue, _)) = self.callers.remove(&token) else { return false };
        let Some(lane) = self.lanes.get_mut(&queue) else { return true };
        let fault = if let Some(unsent) = lane.withdraw(base, flights, token) {
            self.asks -= 1;
            unsent
        } else {
            Fault::Unknown
        };
        if lane.flying.is_none() {
            self.idle.insert(queue);
        }
        base.answer(token, Err(fault));
        true
    }

    fn callers(&self) -> Vec<Token> {
        self.callers.keys().copied().collect()
    }

    /// Nobody waits for the answer; what was asked is carried out all the same.
    fn forget(&mut self, base: &mut Base, token: Token) -> bool {
        let caller = self.callers.remove(&token);
        base.cancel(caller.as_ref().map(|(_, deadline)| *deadline));
        caller.is_some()
    }
}

impl ChangeLane {
    /// The next batch: all of one kind that come first, as many as fit.
    fn take(&mut self, now: Millis) -> Option<(Change, Vec<Share>)> {
        let first = self.pending.pop_front()?;
        let mut shares = Vec::from([Share { token: first.token, jobs: first.change.len() }]);
        let mut change = first.change.elapsed(first.called, now);
        while let Some(next) = self.pending.front() {
            if !change.takes(&next.change) {
                break;
            }
            let Some(Pending { token, change: more, called }) = self.pending.pop_front() else { break };
            shares.push(Share { token, jobs: more.len() });
            change.append(more.elapsed(called, now));
        }
        Some((change, shares))
    }

    /// Takes an ask back if it was certainly never sent, and says why it was not.
    fn withdraw(&mut self, base: &mut Base, flights: &mut Flights, token: Token) -> Option<Fault> {
        let batch = self.flying.as_ref().map(|(batch, _)| *batch);
        if let Some(place) = self.pending.iter().position(|pending| pending.token == token) {
            self.pending.remove(place);
            return Some(Fault::NotSent(batch.and_then(|batch| flights.batch(batch)?.refusal)));
        }
        let (batch, shares) = self.flying.as_mut()?;
        let place = shares.iter().position(|share| share.token == token)?;
        let waiting = flights.waiting_mut(*batch).filter(|batch| !batch.maybe_ran)?;
        let before = shares[..place].iter().map(|share| share.jobs).sum();
        waiting.cut(before, shares.remove(place).jobs);
        let why = waiting.refusal;
        if shares.is_empty() {
            flights.drop_batch(base, *batch);
            self.flying = None;
        }
        Some(Fault::NotSent(why))
    }
}

impl Change {
    fn len(&self) -> usize {
        match self {
            Change::Cancel(ids) => ids.len(),
            Change::Reschedule(jobs) => jobs.len(),
        }
    }

    fn nothing(&self) -> Answer {
        match self {
            Change::Cancel(_) => Answer::Cancelled(Vec::<CancelOutcome>::new()),
            Change::Reschedule(_) => Answer::Rescheduled(Vec::<(RescheduleOutcome, UnixMs)>::new()),
        }
    }

    fn takes(&self, other: &Change) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
            && self.len() + other.len() <= Command::JOBS_MAX
    }

    fn append(&mut self, other: Change) {
        match (self, other) {
            (Change::Cancel(ids), Change::Cancel(more)) => ids.extend(more),
            (Change::Reschedule(jobs), Change::Reschedule(more)) => jobs.extend(more),
            _ => {}
        }
    }

    fn elapsed(mut self, called: Millis, now: Millis) -> Change {
        if let Change::Reschedule(jobs) = &mut self {
            let ms = now.since(called).saturating_sub(1);
            for (_, due) in jobs {
                shorten(due, ms);
            }
        }
        self
    }

    fn command(self, queue: QueueName, session: Session) -> Command {
        match self {
            Change::Cancel(ids) => Command::Cancel { queue, session, ids },
            Change::Reschedule(jobs) => Command::Reschedule { queue, session, jobs },
        }
    }
}

impl Batch {
    /// Takes jobs out of a change that was not sent.
    fn cut(&mut self, before: usize, jobs: usize) {
        match &mut self.command {
            Command::Cancel { ids, .. } => drop(ids.drain(before..before + jobs)),
            Command::Reschedule { jobs: all, .. } => drop(all.drain(before..before + jobs)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Ask, Config, Credit, Engine, Event, Identity, Pumping, Refusal, Request, Ticket, UnixMicros,
    };

    const TIME: UnixMicros = UnixMicros(1_760_000_000_000_000);

    fn engine() -> Engine {
        let config = Config { pump: Pumping::Never, ..Config::default() };
        Engine::new(config, Identity(7), Millis(0)).expect("a valid config")
    }

    fn queue() -> QueueName {
        "orders".parse().expect("a name")
    }

    fn ids(names: &[&str]) -> Vec<JobId> {
        names.iter().map(|name| name.parse().expect("an id")).collect()
    }

    fn cancel(engine: &mut Engine, token: u64, names: &[&str], timeout_ms: u64) {
        let ask = Ask::Cancel { queue: queue(), ids: ids(names) };
        engine.request(Millis(0), Token(token), Request { ask, timeout_ms }).expect("room");
    }

    fn reschedule(engine: &mut Engine, token: u64, name: &str) {
        let jobs = ids(&[name]).into_iter().map(|id| (id, Due::After { ms: 100 })).collect();
        let ask = Ask::Reschedule { queue: queue(), jobs };
        engine.request(Millis(0), Token(token), Request { ask, timeout_ms: 1_000 }).expect("room");
    }

    fn sent(engine: &mut Engine) -> Option<(Ticket, Command)> {
        let transmit = engine.poll_transmit(Credit::UNLIMITED)?;
        Some((transmit.ticket, transmit.commands[0].clone()))
    }

    fn answers(engine: &mut Engine) -> Vec<(u64, Result<Answer, Fault>)> {
        core::iter::from_fn(|| engine.poll_event())
            .filter_map(|event| match event {
                Event::Answered { token, answer } => Some((token.0, answer)),
                _ => None,
            })
            .collect()
    }

    fn cancels(command: &Command) -> (u64, &[JobId]) {
        match command {
            Command::Cancel { session, ids, .. } => (session.sequence, ids),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_asked_together_rides_together_and_each_hears_its_own() {
        use CancelOutcome::{Cancelled, Dead, Gone};

        let mut engine = engine();
        cancel(&mut engine, 1, &["a"], 1_000);
        cancel(&mut engine, 2, &["b", "c"], 1_000);
        reschedule(&mut engine, 3, "d");
        cancel(&mut engine, 4, &["d"], 1_000);
        let (ticket, first) = sent(&mut engine).expect("a batch");
        assert_eq!(cancels(&first).1, ids(&["a", "b", "c"]));
        assert!(sent(&mut engine).is_none());
        let outcomes = Vec::from([Gone, Cancelled, Dead]);
        engine.handle_replies(Millis(5), ticket, [Reply::Cancelled { time: TIME, outcomes }]);
        let told = |outcomes: &[CancelOutcome]| Ok(Answer::Cancelled(outcomes.to_vec()));
        assert_eq!(answers(&mut engine), [(1, told(&[Gone])), (2, told(&[Cancelled, Dead]))]);
        let (ticket, second) = sent(&mut engine).expect("a batch");
        let Command::Reschedule { jobs, .. } = &second else { panic!("{second:?}") };
        assert_eq!(jobs[0].1, Due::After { ms: 96 });
        let (outcomes, dues) = (Vec::from([RescheduleOutcome::Moved]), Vec::from([TIME.ceil_ms() + 96]));
        engine.handle_replies(Millis(5), ticket, [Reply::Rescheduled { time: TIME, outcomes, dues }]);
        let moved = Answer::Rescheduled(Vec::from([(RescheduleOutcome::Moved, TIME.ceil_ms() + 96)]));
        assert_eq!(answers(&mut engine), [(3, Ok(moved))]);
        let (_, third) = sent(&mut engine).expect("a batch");
        assert!(cancels(&third).0 > cancels(&first).0);
    }

    #[test]
    fn a_resend_is_the_same_batch() {
        let mut engine = engine();
        cancel(&mut engine, 1, &["a"], 1_000);
        let (ticket, first) = sent(&mut engine).expect("a batch");
        cancel(&mut engine, 2, &["b"], 1_000);
        engine.handle_loss(Millis(1), ticket);
        assert_eq!(sent(&mut engine).map(|(_, again)| again), Some(first));
        engine.handle_timeout(Millis(1_000));
        let late = [(1, Err(Fault::Unknown)), (2, Err(Fault::NotSent(None)))];
        assert_eq!(answers(&mut engine), late);
    }

    #[test]
    fn what_was_refused_is_taken_back_at_its_deadline() {
        let mut engine = engine();
        cancel(&mut engine, 1, &["a", "b"], 1);
        cancel(&mut engine, 2, &["c"], 1_000);
        let (ticket, _) = sent(&mut engine).expect("a batch");
        engine.handle_replies(Millis(0), ticket, [Reply::Refused(Refusal::NotConnected)]);
        engine.handle_timeout(Millis(1));
        let refused = Err(Fault::NotSent(Some(Refusal::NotConnected)));
        assert_eq!(answers(&mut engine), [(1, refused)]);
        engine.handle_timeout(Millis(900));
        let (_, again) = sent(&mut engine).expect("a batch");
        assert_eq!(cancels(&again).1, ids(&["c"]));
    }

    #[test]
    fn a_move_that_is_answered_as_a_cancel_twice_is_broken() {
        let mut engine = engine();
        reschedule(&mut engine, 1, "a");
        for _ in 0..2 {
            let (ticket, _) = sent(&mut engine).expect("a batch");
            let outcomes = Vec::from([CancelOutcome::Cancelled]);
            engine.handle_replies(Millis(1), ticket, [Reply::Cancelled { time: TIME, outcomes }]);
        }
        let answers = answers(&mut engine);
        assert!(matches!(&*answers, [(1, Err(Fault::Broken(_)))]), "{answers:?}");
    }
}
