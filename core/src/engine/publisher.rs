use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::base::{Base, BatchId, Timer};
use super::flight::{Batch, Flights, Landed, Lane, shorten};
use super::on_demand::Machine;
use crate::{
    Answer, Backlogged, Command, Config, Due, Entry, Fault, Full, Key, Millis, NewJob, PublishOutcome,
    QueueName, RecordError, Refusal, Reply, Session, Token, UnixMicros,
};

const BATCH_BYTES: usize = 1 << 20;

/// Coalesces jobs into batches, a lane a queue: what arrives while a batch is in the air rides on the next.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Publisher {
    lanes: BTreeMap<QueueName, PublishLane>,
    idle: BTreeSet<QueueName>,
    callers: BTreeMap<Token, QueueName>,
    jobs: usize,
    bytes: usize,
}

#[derive(Default, Serialize, Deserialize)]
struct PublishLane {
    pending: VecDeque<Pending>,
    flying: Option<(BatchId, Vec<Caller>)>,
}

#[derive(Serialize, Deserialize)]
struct Pending {
    entry: Entry,
    called: Millis,
    caller: Caller,
}

#[derive(Serialize, Deserialize)]
struct Caller {
    token: Token,
    generated: bool,
    deadline: Key,
    answered: bool,
    /// Whether it waits for room in Redis's memory.
    patient: bool,
    /// As its batch was made: transmissions of it shorten the delay by what has passed since.
    due: Due,
}

impl Publisher {
    pub(super) fn publish(
        &mut self,
        base: &mut Base,
        token: Token,
        job: NewJob,
        encode: impl FnOnce(NewJob, &Config) -> Result<Entry, RecordError>,
    ) -> Result<(), Backlogged<NewJob>> {
        if self.room(base) == 0 || self.bytes + job.body.len() > base.config.pending_bytes {
            return Err(Backlogged(job));
        }
        let (queue, generated, timeout_ms) = (job.queue.clone(), job.generated, job.timeout_ms);
        let patient = job.wait_for_memory;
        match encode(job, &base.config) {
            Err(error) => base.answer(token, Err(Fault::Record(error))),
            Ok(entry) => {
                let deadline = base.after(timeout_ms, Timer::PublishDeadline(token));
                self.jobs += 1;
                self.bytes += entry.record.len();
                self.callers.insert(token, queue.clone());
                let caller = Caller { token, generated, deadline, answered: false, patient, due: entry.due };
                self.push(queue, Pending { entry, called: base.now, caller });
            }
        }
        Ok(())
    }

    pub(super) fn room(&self, base: &Base) -> usize {
        if self.bytes >= base.config.pending_bytes {
            return 0;
        }
        base.config.pending_jobs.saturating_sub(self.jobs)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs == 0
    }

    fn push(&mut self, queue: QueueName, pending: Pending) {
        let lane = self.lanes.entry(queue.clone()).or_default();
        lane.pending.push_back(pending);
        if lane.flying.is_none() {
            self.idle.insert(queue);
        }
    }

    fn settle_caller(
        &mut self,
        base: &mut Base,
        queue: &QueueName,
        caller: Caller,
        accepted: Accepted,
        outcome: PublishOutcome,
    ) {
        let Accepted { mut entry, since, full, maybe_ran } = accepted;
        let id = entry.id.clone();
        let answer = match outcome {
            PublishOutcome::Duplicate if caller.generated && !maybe_ran && !caller.answered => {
                entry.id = id.redrawn(base.identity.0 ^ base.next_sequence());
                let pending = Pending { entry, called: base.now, caller };
                self.push(queue.clone(), pending);
                return;
            }
            PublishOutcome::Duplicate if !caller.generated => Ok(Answer::Duplicate { id }),
            PublishOutcome::New | PublishOutcome::Replaced | PublishOutcome::Duplicate => {
                let replaced = outcome == PublishOutcome::Replaced;
                Ok(Answer::Published { id, due: caller.due.counted_from(since), replaced })
            }
            PublishOutcome::Full => {
                let ceiling = base.config.ceiling;
                let unknown = Full { jobs: ceiling.jobs, dead: 0, bytes: 0, ceiling };
                Err(Fault::QueueFull { queue: queue.clone(), full: full.unwrap_or(unknown) })
            }
        };
        self.finish(base, &caller, &entry, answer);
    }

    fn finish(&mut self, base: &mut Base, caller: &Caller, entry: &Entry, answer: Result<Answer, Fault>) {
        self.jobs -= 1;
        self.bytes -= entry.record.len();
        if !caller.answered {
            base.wheel.cancel(caller.deadline);
            self.callers.remove(&caller.token);
            base.answer(caller.token, answer);
        }
    }

    fn withdraw(&mut self, base: &mut Base, entry: &Entry, token: Token, why: Option<Refusal>) {
        self.jobs -= 1;
        self.bytes -= entry.record.len();
        base.answer(token, Err(Fault::NotSent(why)));
    }
}

impl Machine for Publisher {
    fn form(&mut self, base: &mut Base, flights: &mut Flights) {
        let waits = base.is_thrifty() && !base.leaves() && self.bytes < BATCH_BYTES;
        for queue in core::mem::take(&mut self.idle) {
            let Some(lane) = self.lanes.get_mut(&queue) else { continue };
            if waits && !lane.pending.is_empty() && lane.pending.len() < Command::JOBS_MAX {
                self.idle.insert(queue);
                base.wait_for_gap();
                continue;
            }
            let (mut jobs, mut callers, mut bytes) = (Vec::new(), Vec::new(), 0);
            while let Some(next) = lane.pending.front() {
                let size = next.entry.record.len();
                // An edit reads the record that it changes, so it has a batch to itself.
                let is_alone =
                    next.entry.edit.is_some() || jobs.last().is_some_and(|job: &Entry| job.edit.is_some());
                let is_full = jobs.len() == Command::JOBS_MAX || bytes + size > BATCH_BYTES || is_alone;
                if is_full && !jobs.is_empty() {
                    break;
                }
                bytes += size;
                let Some(Pending { mut entry, called, mut caller }) = lane.pending.pop_front() else { break };
                shorten(&mut entry.due, base.now.since(called).saturating_sub(1));
                caller.due = entry.due;
                jobs.push(entry);
                callers.push(caller);
            }
            if jobs.is_empty() {
                self.lanes.remove(&queue);
                continue;
            }
            let session = Session { engine: base.identity, lane: 0, sequence: base.next_sequence() };
            let ceiling = base.config.ceiling;
            let command = Command::Publish { queue: queue.clone(), session, ceiling, jobs };
            let batch = flights.submit(base, Lane::Publish(queue), command, base.config.resend_ms);
            if base.is_thrifty() {
                base.has_left();
            }
            lane.flying = Some((batch, callers));
        }
    }

    fn handle_landed(&mut self, base: &mut Base, queue: &QueueName, landed: Landed) {
        let Some((_, callers)) = self.lanes.get_mut(queue).and_then(|lane| lane.flying.take()) else {
            return;
        };
        self.idle.insert(queue.clone());
        let Landed { batch, reply } = landed;
        let shortened = match &reply {
            Some(Reply::Published { since, .. }) => batch.shortened_by(base, *since),
            _ => 0,
        };
        let Command::Publish { jobs, .. } = batch.command else { return };
        let (maybe_ran, refusal) = (batch.maybe_ran, batch.refusal);
        match reply {
            Some(Reply::Published { since, outcomes, full, .. }) => {
                for ((mut caller, entry), outcome) in callers.into_iter().zip(jobs).zip(outcomes) {
                    shorten(&mut caller.due, shortened);
                    let entry = Accepted { entry, since, full, maybe_ran };
                    self.settle_caller(base, queue, caller, entry, outcome);
                }
            }
            other => {
                let fault = match other {
                    Some(Reply::Gated { gate, .. }) => Fault::Gated { queue: queue.clone(), gate },
                    Some(Reply::Broken(why)) => Fault::Broken(why),
                    None if !maybe_ran => Fault::NotSent(refusal),
                    _ => Fault::Unknown,
                };
                for (caller, entry) in callers.into_iter().zip(jobs) {
                    self.finish(base, &caller, &entry, Err(fault.clone()));
                }
            }
        }
    }

    /// The caller is answered. A job that may have been sent stays in its batch, since a resend carries the same jobs.
    fn handle_deadline(&mut self, base: &mut Base, flights: &mut Flights, token: Token) -> bool {
        let Some(queue) = self.callers.remove(&token) else { return false };
        let Some(lane) = self.lanes.get_mut(&queue) else { return true };
        if let Some(place) = lane.pending.iter().position(|pending| pending.caller.token == token) {
            let why = lane.flying.as_ref().and_then(|(batch, _)| flights.batch(*batch)?.refusal);
            if let Some(pending) = lane.pending.remove(place) {
                self.withdraw(base, &pending.entry, token, why);
            }
            return true;
        }
        let Some((batch, callers)) = &mut lane.flying else { return true };
        let Some(place) = callers.iter().position(|caller| caller.token == token && !caller.answered) else {
            return true;
        };
        let batch = *batch;
        match flights.waiting_mut(batch).filter(|batch| !batch.maybe_ran) {
            None => {
                callers[place].answered = true;
                base.answer(token, Err(Fault::Unknown));
            }
            Some(waiting) => {
                callers.remove(place);
                let why = waiting.refusal;
                let Command::Publish { jobs, .. } = &mut waiting.command else { return true };
                let entry = jobs.remove(place);
                if jobs.is_empty() {
                    flights.drop_batch(base, batch);
                    lane.flying = None;
                    self.idle.insert(queue);
                }
                self.withdraw(base, &entry, token, why);
            }
        }
        true
    }

    /// Who does not wait for room is answered, and what was certainly not accepted is not sent again.
    fn handle_full(&mut self, base: &mut Base, flights: &mut Flights) {
        let is_full = |batch: &Batch| !batch.maybe_ran && batch.refusal == Some(Refusal::OutOfMemory);
        let mut refused = Vec::new();
        for lane in self.lanes.values() {
            let Some((batch, callers)) = &lane.flying else { continue };
            if flights.waiting_mut(*batch).is_some_and(|batch| is_full(batch)) {
                let pending = lane.pending.iter().map(|pending| &pending.caller);
                let hasty = pending.chain(callers).filter(|caller| !caller.patient);
                refused.extend(hasty.map(|caller| (caller.token, caller.deadline)));
            }
        }
        for (token, deadline) in refused {
            base.wheel.cancel(deadline);
            self.handle_deadline(base, flights, token);
        }
    }

    fn callers(&self) -> Vec<Token> {
        self.callers.keys().copied().collect()
    }

    /// Nobody waits for the answer; the job is published all the same.
    fn forget(&mut self, base: &mut Base, token: Token) -> bool {
        let Some(queue) = self.callers.remove(&token) else { return false };
        let Some(lane) = self.lanes.get_mut(&queue) else { return true };
        let pending = lane.pending.iter_mut().map(|pending| &mut pending.caller);
        let flying = lane.flying.iter_mut().flat_map(|(_, callers)| callers.iter_mut());
        if let Some(caller) = pending.chain(flying).find(|caller| caller.token == token) {
            caller.answered = true;
            base.wheel.cancel(caller.deadline);
        }
        true
    }
}

struct Accepted {
    entry: Entry,
    since: UnixMicros,
    full: Option<Full>,
    maybe_ran: bool,
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{Config, Credit, Engine, Event, Identity, JobId, Ticket, UnixMs};

    const START: UnixMicros = UnixMicros(1_760_000_000_000_000);

    fn publish(engine: &mut Engine, now: Millis, name: &str) -> Ticket {
        let (queue, id): (QueueName, JobId) = ("orders".parse().unwrap(), name.parse().unwrap());
        let due = Due::After { ms: 1_000 };
        let job = NewJob { due, ..NewJob::new(queue, id, bytes::Bytes::new()) };
        engine.publish(now, Token(0), job).expect("room");
        engine.poll_transmit(Credit::UNLIMITED).expect("a transmit").ticket
    }

    /// Redis's clock when the engine's reads so many milliseconds, and half of one.
    fn redis(ms: u64) -> UnixMicros {
        UnixMicros(START.0 + ms * 1_000 + 500)
    }

    fn reply(engine: &mut Engine, now: u64, ticket: Ticket, since: UnixMicros) -> Option<UnixMs> {
        let reply =
            Reply::Published { time: redis(now), since, outcomes: vec![PublishOutcome::New], full: None };
        engine.handle_replies(Millis(now + 1), ticket, [reply]);
        core::iter::from_fn(|| engine.poll_event()).find_map(|event| match event {
            Event::Answered { answer: Ok(Answer::Published { due, .. }), .. } => Some(due),
            _ => None,
        })
    }

    #[test]
    fn the_due_time_is_that_of_the_transmission_that_ran() {
        for (ran, due) in [(10, START.0 / 1_000 + 1_011), (200, START.0 / 1_000 + 1_201 - 189)] {
            let mut engine = Engine::new(Config::default(), Identity(7), Millis(0)).expect("a config");
            let known = publish(&mut engine, Millis(0), "first");
            reply(&mut engine, 0, known, redis(0));
            let lost = publish(&mut engine, Millis(10), "second");
            engine.handle_loss(Millis(200), lost);
            let resent = engine.poll_transmit(Credit::UNLIMITED).expect("a resend").ticket;
            assert_eq!(reply(&mut engine, 200, resent, redis(ran)), Some(UnixMs(due)), "ran at {ran} ms");
        }
    }

    #[test]
    fn a_replacing_publish_says_so_and_of_a_generated_id_nothing() {
        for generated in [false, true] {
            let mut engine = Engine::new(Config::default(), Identity(7), Millis(0)).expect("a config");
            let (queue, id): (QueueName, JobId) = ("orders".parse().unwrap(), "one".parse().unwrap());
            let job = NewJob { generated, replace: true, ..NewJob::new(queue, id, bytes::Bytes::new()) };
            engine.publish(Millis(0), Token(0), job).expect("room");
            let transmit = engine.poll_transmit(Credit::UNLIMITED).expect("a transmit");
            let Command::Publish { jobs, .. } = &transmit.commands[0] else { panic!("no publish") };
            assert_eq!(jobs[0].replace, !generated);
            let (ticket, time) = (transmit.ticket, redis(0));
            let outcomes = vec![if generated { PublishOutcome::New } else { PublishOutcome::Replaced }];
            let reply = Reply::Published { time, since: time, outcomes, full: None };
            engine.handle_replies(Millis(1), ticket, [reply]);
            let event = core::iter::from_fn(|| engine.poll_event()).next();
            let Some(Event::Answered { answer: Ok(Answer::Published { replaced, .. }), .. }) = event else {
                panic!("{event:?}")
            };
            assert_eq!(replaced, !generated);
        }
    }
}
