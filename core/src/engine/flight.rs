use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::base::{Base, BatchId, Timer};
use super::window::Window;
use crate::wire::Form;
use crate::{Command, Due, Key, Kind, Millis, QueueName, Refusal, Reply, Shard, Ticket, Token, UnixMicros};

const COMMANDS_MAX: usize = 32;
const BYTES_MAX: usize = 1 << 20;
const FIRST_PAUSE_MS: u64 = 20;
const LONGEST_PAUSE_MS: u64 = 2_000;
const FORGET_MS: u64 = 600_000;

/// What is sent, until it is answered: round trips, their timers, resends and pauses between them.
///
/// A flight that timed out stays known, since its reply is still welcome; its commands fly again under a new ticket.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Flights {
    batches: Window<BatchId, Box<Batch>>,
    in_air: Window<Ticket, Box<Flight>>,
    ready: LiteMap<Shard, VecDeque<BatchId>>,
    batch_count: u64,
    ticket_count: u64,
    /// Redis refused to publish for want of memory, and nobody was told yet.
    full: bool,
}

/// The machine that a reply goes to. One batch of a lane is under way at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Lane {
    Publish(QueueName),
    Change(QueueName),
    Reserve(QueueName),
    Settle(QueueName),
    Extend(QueueName, u64),
    Peek(Shard),
    Tend(QueueName),
    Ask(Token),
    Watch,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Batch {
    pub(super) lane: Lane,
    pub(super) command: Command,
    pub(super) first_sent: Option<Millis>,
    /// A transmission of it is not known to have failed.
    pub(super) maybe_ran: bool,
    pub(super) refusal: Option<Refusal>,
    /// An answer to it made no sense.
    puzzled: bool,
    made: Millis,
    stamped: Millis,
    /// When it was sent with shorter delays than before, and by how much they are shorter in all.
    shortened: Vec<(Millis, u64)>,
    resend_ms: u64,
    form: Form,
    tries: u32,
    flying: Option<Ticket>,
    pause: Option<Key>,
}

/// A batch that is over: answered, or given up after its time to resend.
pub(super) struct Landed {
    pub(super) batch: Box<Batch>,
    pub(super) reply: Option<Reply>,
}

#[derive(Serialize, Deserialize)]
struct Flight {
    sent: Millis,
    shard: Shard,
    commands: Vec<Command>,
    forms: Vec<Form>,
    batches: Vec<BatchId>,
    timer: Option<Key>,
}

/// A batch of commands for one shard, to be sent in order as one round trip.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// What to report its fate by.
    pub ticket: Ticket,
    /// Where to; on a cluster all commands but [`Command::Open`] go to one slot.
    pub shard: Shard,
    /// What to send.
    pub commands: &'a [Command],
    /// How to name the script of each.
    pub forms: &'a [Form],
}

impl Transmit<'_> {
    /// What decoding the replies needs after the borrow has ended.
    pub fn kinds(&self) -> Vec<Kind> {
        self.commands.iter().map(Command::kind).collect()
    }
}

impl Flights {
    pub(super) fn submit(&mut self, base: &Base, lane: Lane, command: Command, resend_ms: u64) -> BatchId {
        let shard = command.shard(base.config.shards);
        let id = self.make(base, lane, command, resend_ms);
        self.ready.entry(shard).or_default().push_back(id);
        id
    }

    /// The same, before what else is ready.
    pub(super) fn submit_first(
        &mut self,
        base: &Base,
        lane: Lane,
        command: Command,
        resend_ms: u64,
    ) -> BatchId {
        let shard = command.shard(base.config.shards);
        let id = self.make(base, lane, command, resend_ms);
        self.ready.entry(shard).or_default().push_front(id);
        id
    }

    /// Whether anything is to be sent now.
    pub(super) fn any_ready(&self) -> bool {
        self.ready.values().any(|ids| !ids.is_empty())
    }

    /// Whether anything is to be sent to the shard now.
    pub(super) fn is_ready(&self, shard: Shard) -> bool {
        self.ready.get(&shard).is_some_and(|ids| !ids.is_empty())
    }

    /// Sends it before what is ready, in the same round trip; `false` if nothing is. It is not sent again.
    pub(super) fn submit_along(&mut self, base: &Base, lane: Lane, command: Command) -> bool {
        let batches = &self.batches;
        let mut ready = self.ready.iter();
        let along = ready.find(|(_, ids)| ids.iter().any(|id| batches.contains(id)));
        let Some(shard) = along.map(|(shard, _)| *shard) else { return false };
        let id = self.make(base, lane, command, 0);
        self.ready.entry(shard).or_default().push_front(id);
        true
    }

    fn make(&mut self, base: &Base, lane: Lane, command: Command, resend_ms: u64) -> BatchId {
        let id = BatchId(self.batch_count);
        self.batch_count += 1;
        let batch = Box::new(Batch {
            lane,
            command,
            first_sent: None,
            maybe_ran: false,
            refusal: None,
            puzzled: false,
            made: base.now,
            stamped: base.now,
            shortened: Vec::new(),
            resend_ms,
            form: Form::Sha,
            tries: 0,
            flying: None,
            pause: None,
        });
        self.batches.insert(id, batch);
        id
    }

    /// The batch, while it is not in the air.
    pub(super) fn waiting_mut(&mut self, id: BatchId) -> Option<&mut Batch> {
        self.batches.get_mut(&id).map(|batch| &mut **batch).filter(|batch| batch.flying.is_none())
    }

    pub(super) fn batch(&self, id: BatchId) -> Option<&Batch> {
        self.batches.get(&id).map(|batch| &**batch)
    }

    /// Nobody waits for the batch any more, and it need not arrive.
    pub(super) fn drop_batch(&mut self, base: &mut Base, id: BatchId) {
        if let Some(batch) = self.batches.remove(&id) {
            base.cancel(batch.pause);
        }
    }

    /// Drops what callers asked for, but for verdicts.
    pub(super) fn drop_calls(&mut self) {
        self.batches
            .retain(|_, batch| !matches!(batch.lane, Lane::Publish(_) | Lane::Change(_) | Lane::Ask(_)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The next round trip; if `only_verdicts`, one that carries some.
    pub(super) fn transmit(&mut self, base: &mut Base, only_verdicts: bool) -> Option<Ticket> {
        let (shard, ids) = self.next_ready(only_verdicts)?;
        let mut flight = Box::new(Flight {
            sent: base.now,
            shard,
            commands: Vec::with_capacity(ids.len()),
            forms: Vec::with_capacity(ids.len()),
            batches: ids,
            timer: None,
        });
        let ticket = Ticket(self.ticket_count);
        self.ticket_count += 1;
        for id in &flight.batches {
            if let Some(batch) = self.batches.get_mut(id) {
                batch.elapse(base.now);
                batch.first_sent = batch.first_sent.or(Some(base.now));
                batch.flying = Some(ticket);
                flight.commands.push(core::mem::replace(&mut batch.command, Command::Server));
                flight.forms.push(batch.form);
            }
        }
        flight.timer = Some(base.after(base.config.flight_ms, Timer::Overdue(ticket)));
        self.in_air.insert(ticket, flight);
        self.forget_old(base.now);
        Some(ticket)
    }

    pub(super) fn transmitted(&self, ticket: Ticket) -> Option<Transmit<'_>> {
        let flight = self.in_air.get(&ticket)?;
        Some(Transmit { ticket, shard: flight.shard, commands: &flight.commands, forms: &flight.forms })
    }

    fn next_ready(&mut self, only_verdicts: bool) -> Option<(Shard, Vec<BatchId>)> {
        let batches = &self.batches;
        self.ready.iter_mut().for_each(|(_, ids)| ids.retain(|id| batches.contains(id)));
        self.ready.retain(|_, ids| !ids.is_empty());
        let is_verdict =
            |id: &BatchId| batches.get(id).is_some_and(|batch| matches!(batch.lane, Lane::Settle(_)));
        let mut ready = self.ready.iter_mut();
        let (&shard, ids) = ready.find(|(_, ids)| !only_verdicts || ids.iter().any(is_verdict))?;
        if only_verdicts {
            let (verdicts, others): (VecDeque<_>, VecDeque<_>) = ids.drain(..).partition(is_verdict);
            ids.extend(verdicts.into_iter().chain(others));
        }
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(id) = ids.front() {
            let size = batches.get(id).map_or(0, |batch| batch.command.bytes());
            if taken.len() == COMMANDS_MAX || (!taken.is_empty() && bytes + size > BYTES_MAX) {
                break;
            }
            bytes += size;
            taken.extend(ids.pop_front());
        }
        Some((shard, taken))
    }

    pub(super) fn handle_replies(
        &mut self,
        base: &mut Base,
        ticket: Ticket,
        replies: impl IntoIterator<Item = Reply>,
    ) -> (Option<Millis>, Vec<Landed>) {
        let Some(mut flight) = self.in_air.remove(&ticket) else { return (None, Vec::new()) };
        base.cancel(flight.timer);
        let mut landed = Vec::with_capacity(flight.batches.len());
        let mut replies = replies.into_iter();
        let commands = core::mem::take(&mut flight.commands);
        self.take_back(ticket, &flight.batches, commands);
        for &id in &flight.batches {
            match replies.next() {
                Some(Reply::Refused(why)) => self.refused(base, ticket, id, why, &mut landed),
                Some(reply) if self.is_puzzled_by(base.now, ticket, id, &reply) => {
                    self.lost(base, ticket, id, &mut landed);
                }
                Some(reply) => landed.extend(self.land(base, id, Some(reply))),
                None => self.lost(base, ticket, id, &mut landed),
            }
        }
        (Some(flight.sent), landed)
    }

    /// Whether publishing was refused for want of memory since this was asked.
    pub(super) fn take_full(&mut self) -> bool {
        core::mem::take(&mut self.full)
    }

    /// The flight may or may not have run; a later reply is not to be expected.
    pub(super) fn handle_loss(&mut self, base: &mut Base, ticket: Ticket) -> Vec<Landed> {
        let mut landed = Vec::new();
        if let Some(mut flight) = self.in_air.remove(&ticket) {
            base.cancel(flight.timer);
            let commands = core::mem::take(&mut flight.commands);
            self.take_back(ticket, &flight.batches, commands);
            for &id in &flight.batches {
                self.lost(base, ticket, id, &mut landed);
            }
        }
        landed
    }

    /// The answer is overdue: sent again, while a late reply is still welcome.
    pub(super) fn handle_overdue(&mut self, base: &mut Base, ticket: Ticket) -> Vec<Landed> {
        let mut landed = Vec::new();
        let Some(flight) = self.in_air.get_mut(&ticket) else { return landed };
        flight.timer = None;
        let (ids, commands) = (flight.batches.clone(), core::mem::take(&mut flight.commands));
        self.take_back(ticket, &ids, commands);
        for id in ids {
            self.lost(base, ticket, id, &mut landed);
        }
        landed
    }

    pub(super) fn handle_resend(&mut self, base: &mut Base, id: BatchId) -> Vec<Landed> {
        if let Some(batch) = self.batches.get_mut(&id) {
            batch.pause = None;
        }
        let mut landed = Vec::new();
        self.resend(base, id, &mut landed);
        landed
    }

    fn take_back(&mut self, ticket: Ticket, ids: &[BatchId], commands: Vec<Command>) {
        for (id, command) in ids.iter().zip(commands) {
            if let Some(batch) = self.batches.get_mut(id).filter(|batch| batch.flying == Some(ticket)) {
                batch.command = command;
            }
        }
    }

    fn land(&mut self, base: &mut Base, id: BatchId, reply: Option<Reply>) -> Option<Landed> {
        let mut batch = self.batches.remove(&id)?;
        base.cancel(batch.pause);
        if let Some(flight) = batch.flying.and_then(|ticket| self.in_air.get_mut(&ticket)) {
            let place = flight.batches.iter().position(|have| *have == id);
            if let Some(command) = place.and_then(|place| flight.commands.get(place)) {
                batch.command = command.clone();
            }
        }
        let reply = reply.map(|reply| match reply {
            Reply::Broken(why) => broken(&batch.command, &why),
            reply if reply.fits(&batch.command) => reply,
            _ => broken(&batch.command, "it is of another kind, or about another number of jobs"),
        });
        Some(Landed { batch, reply })
    }

    /// Whether the answer makes no sense, for the first time: every command is safe to repeat, and the next answer may.
    fn is_puzzled_by(&mut self, now: Millis, ticket: Ticket, id: BatchId, reply: &Reply) -> bool {
        let Some(batch) = self.batches.get_mut(&id) else { return false };
        if batch.puzzled || batch.is_too_old(now) {
            return false;
        }
        let has_command = batch.flying.is_none_or(|flying| flying == ticket);
        batch.puzzled = matches!(reply, Reply::Broken(_)) || (has_command && !reply.fits(&batch.command));
        batch.puzzled
    }

    fn refused(
        &mut self,
        base: &mut Base,
        ticket: Ticket,
        id: BatchId,
        why: Refusal,
        landed: &mut Vec<Landed>,
    ) {
        let Some(batch) = self.batches.get_mut(&id).filter(|batch| batch.flying == Some(ticket)) else {
            return;
        };
        batch.flying = None;
        batch.refusal = Some(why);
        self.full |= why == Refusal::OutOfMemory && matches!(batch.lane, Lane::Publish(_));
        if why == Refusal::NoScript && batch.form == Form::Sha {
            batch.form = Form::Source;
            self.ready.entry(batch.command.shard(base.config.shards)).or_default().push_back(id);
        } else {
            batch.form = Form::Sha;
            self.pause(base, id, landed);
        }
    }

    fn lost(&mut self, base: &mut Base, ticket: Ticket, id: BatchId, landed: &mut Vec<Landed>) {
        let Some(batch) = self.batches.get_mut(&id).filter(|batch| batch.flying == Some(ticket)) else {
            return;
        };
        batch.flying = None;
        batch.maybe_ran = true;
        batch.form = Form::Sha;
        if batch.tries == 0 {
            batch.tries = 1;
            self.resend(base, id, landed);
        } else {
            self.pause(base, id, landed);
        }
    }

    fn pause(&mut self, base: &mut Base, id: BatchId, landed: &mut Vec<Landed>) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        if batch.is_too_old(base.now) {
            landed.extend(self.land(base, id, None));
            return;
        }
        let longest = (FIRST_PAUSE_MS << batch.tries.min(16)).min(LONGEST_PAUSE_MS);
        batch.tries += 1;
        let spread = (id.0 ^ base.identity.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        batch.pause = Some(base.after(longest - spread % (longest / 2), Timer::Resend(id)));
    }

    fn resend(&mut self, base: &mut Base, id: BatchId, landed: &mut Vec<Landed>) {
        let Some(batch) = self.batches.get(&id) else { return };
        if batch.is_too_old(base.now) {
            landed.extend(self.land(base, id, None));
        } else {
            self.ready.entry(batch.command.shard(base.config.shards)).or_default().push_back(id);
        }
    }

    fn forget_old(&mut self, now: Millis) {
        while let Some((_, oldest)) = self.in_air.first() {
            if oldest.timer.is_some() || now.since(oldest.sent) < FORGET_MS {
                break;
            }
            self.in_air.pop_first();
        }
    }
}

/// An answer that makes no sense says what was asked, and the way out; what opens a deployment says both itself.
fn broken(command: &Command, why: &str) -> Reply {
    let about = match command.queue() {
        _ if matches!(command, Command::Open { .. }) => return Reply::Broken(why.into()),
        Some(queue) => format!("queue {queue}"),
        None => "the deployment".into(),
    };
    Reply::Broken(format!(
        "{why} (asked for {:?} of {about}); `delayline doctor` says what is broken there, and `delayline doctor --repair` \
         mends it",
        command.kind()
    ))
}

impl Batch {
    /// Only what may have run must stop being sent: scripts forget sessions after a while.
    fn is_too_old(&self, now: Millis) -> bool {
        let since = if self.maybe_ran { self.first_sent.unwrap_or(self.made) } else { self.made };
        now.since(since) >= self.resend_ms
    }

    /// Whether it was sent, and waits to be sent again.
    pub(super) fn is_to_resend(&self) -> bool {
        self.first_sent.is_some() && self.flying.is_none()
    }

    /// By how much its delays were shorter in the transmission that ran at `ran`: the last one that Redis can have got
    /// by then.
    pub(super) fn shortened_by(&self, base: &Base, ran: UnixMicros) -> u64 {
        let arrived = |sent: Millis| base.clock.redis_now(sent).is_none_or(|(earliest, _)| earliest <= ran);
        self.shortened.iter().rev().find(|(sent, _)| arrived(*sent)).map_or(0, |(_, total)| *total)
    }

    /// Delays count from the call: what has passed since is taken off, a millisecond less, for the clock's own rounding.
    fn elapse(&mut self, now: Millis) {
        let ms = now.since(self.stamped).saturating_sub(1);
        self.stamped = now;
        if ms == 0 {
            return;
        }
        let before = self.shortened.last().map_or(0, |(_, total)| *total);
        self.shortened.push((now, before + ms));
        match &mut self.command {
            Command::Publish { jobs, .. } => jobs.iter_mut().for_each(|job| shorten(&mut job.due, ms)),
            Command::Reschedule { jobs, .. } => jobs.iter_mut().for_each(|(_, due)| shorten(due, ms)),
            Command::Settle { leases, .. } => {
                for (_, _, settlement) in leases {
                    settlement.elapse(ms);
                }
            }
            _ => {}
        }
    }
}

pub(super) fn shorten(due: &mut Due, ms: u64) {
    if let Due::After { ms: left } = due {
        *left = left.saturating_sub(ms);
    }
}
