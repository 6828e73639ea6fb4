//! The machines, composed.

mod asked;
mod base;
mod changer;
mod checkpoint;
mod consumer;
mod flight;
mod grant;
mod held;
mod on_demand;
mod pace;
mod publisher;
mod pump;
mod purse;
mod requests;
mod set;
mod settler;
mod takes;
mod turns;
mod watch;
mod window;

use alloc::vec::Vec;

use base::{Base, Timer};
use changer::{Change, Changer};
use consumer::Consumer;
pub use flight::Transmit;
use flight::{Flights, Landed, Lane};
use on_demand::{Machine, OnDemand};
use publisher::Publisher;
use pump::Pump;
use purse::{Purse, Spender};
use requests::Requests;
use settler::{Settler, Whose};
use watch::{Seen, Watch};

use crate::{
    Ask, Backlogged, Config, ConfigError, Credit, Event, Held, Identity, Millis, NewJob, Pumping, QueueName,
    Reply, Request, Sample, Shards, Take, Ticket, TimeoutReason, Token, UnixMicros, Verdict, Wakeup,
};

const TIMERS_MAX: usize = 4_096;

/// The delayed-job queue's client side, without clock, randomness or I/O: a function of its list of inputs.
///
/// There are four kinds of method. *The world* reports through `handle_*`: none of them fails; early, late and repeated
/// calls are harmless; `now` enters through them and never goes back. *The application* calls verbs ([`publish`],
/// [`take`], [`request`], [`settle`], [`forget`], [`drain`]). *What to do* is asked of `poll_*`: after each call of the
/// first two kinds alternate [`poll_transmit`] and [`poll_event`] until both answer `None`, then read [`poll_timeout`]
/// and call [`handle_timeout`] at that time. The rest are getters.
///
/// Each transmit is one round trip. The driver encodes its commands, keeps its ticket and kinds, and reports the replies
/// or the loss by the ticket; if it reports nothing, the engine takes the answer for overdue after
/// [`Config::flight_ms`].
///
/// [`publish`]: Engine::publish
/// [`take`]: Engine::take
/// [`request`]: Engine::request
/// [`settle`]: Engine::settle
/// [`forget`]: Engine::forget
/// [`drain`]: Engine::drain
/// [`poll_transmit`]: Engine::poll_transmit
/// [`poll_event`]: Engine::poll_event
/// [`poll_timeout`]: Engine::poll_timeout
/// [`handle_timeout`]: Engine::handle_timeout
pub struct Engine {
    base: Base,
    flights: Flights,
    publisher: OnDemand<Publisher>,
    settler: Settler,
    changer: OnDemand<Changer>,
    consumer: Consumer,
    pump: Pump,
    requests: Requests,
    watch: Watch,
    drained: bool,
}

impl Engine {
    /// A new engine. `identity` is random and new for every engine ever made: the store's memory of batches rests on it.
    pub fn new(config: Config, identity: Identity, now: Millis) -> Result<Engine, ConfigError> {
        config.validate()?;
        let base = Base::new(config, identity, now);
        Ok(Engine {
            flights: Flights::default(),
            publisher: OnDemand::default(),
            settler: Settler::default(),
            changer: OnDemand::default(),
            consumer: Consumer::new(&base),
            pump: Pump::new(&base),
            requests: Requests::default(),
            watch: Watch::new(&base),
            drained: false,
            base,
        })
    }

    /// Its identity.
    pub fn identity(&self) -> Identity {
        self.base.identity
    }

    /// Its config.
    pub fn config(&self) -> &Config {
        &self.base.config
    }

    /// How many publishes would be accepted now; at zero, callers should wait.
    pub fn room(&self) -> usize {
        if self.base.draining {
            return 0;
        }
        self.publisher.get().map_or(self.base.config.pending_jobs, |publisher| publisher.room(&self.base))
    }

    /// How many managed jobs are in hand.
    pub fn held(&self) -> usize {
        self.consumer.held()
    }

    /// Whether it was drained and nothing is left to do.
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    /// Whether nothing is under way: all it was told is answered and sent, and it holds neither jobs nor a pump lease.
    pub fn is_idle(&self) -> bool {
        self.publisher.get().is_none_or(Publisher::is_empty)
            && self.settler.is_empty()
            && self.changes() == 0
            && self.requests.len() == 0
            && self.consumer.is_idle()
            && self.pump.is_idle(self.base.now)
            && self.flights.is_empty()
    }

    /// Redis's clock as this engine knows it: the earliest and the latest it can be; `None` before the first reply.
    pub fn redis_now(&self) -> Option<(UnixMicros, UnixMicros)> {
        self.base.clock.redis_now(self.base.now)
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Millis) {
        self.enter(now);
        for _ in 0..TIMERS_MAX {
            let Some((_, timer)) = self.base.wheel.pop_expired(self.base.now) else { break };
            self.handle_timer(timer);
        }
        self.after();
    }

    /// The replies of a round trip, one a command in order; missing ones count as lost. Late tickets are welcome,
    /// unknown ones ignored.
    pub fn handle_replies(&mut self, now: Millis, ticket: Ticket, replies: impl IntoIterator<Item = Reply>) {
        self.enter(now);
        let (sent, landed) = self.flights.handle_replies(&mut self.base, ticket, replies);
        if self.flights.take_full()
            && let Some(publisher) = self.publisher.machine()
        {
            publisher.handle_full(&mut self.base, &mut self.flights);
        }
        for landed in landed {
            if let Some((sent, time)) = sent.zip(landed.reply.as_ref().and_then(Reply::time)) {
                self.sample(sent, time);
            }
            self.land(landed);
        }
        self.after();
    }

    /// A round trip failed and may or may not have been carried out.
    pub fn handle_loss(&mut self, now: Millis, ticket: Ticket) {
        self.enter(now);
        let landed = self.flights.handle_loss(&mut self.base, ticket);
        self.land_all(landed);
        self.after();
    }

    /// A notification; all of them may lie.
    pub fn handle_wakeup(&mut self, now: Millis, wakeup: Wakeup) {
        self.enter(now);
        match wakeup {
            Wakeup::Ready(queue) => {
                self.consumer.hunger(&queue);
                if !self.consumer.wants(&self.base, &queue) {
                    self.pump.tend(&queue);
                }
            }
            Wakeup::Head(shard, at) => self.pump.handle_head(&mut self.base, shard, at),
            Wakeup::Subscribed => {
                self.base.wakeable = true;
                self.watch.look_again();
                self.start_over();
            }
            Wakeup::Unsubscribed => self.base.wakeable = false,
        }
        self.after();
    }

    /// Publishes a job. Answered once by [`Event::Answered`], at the latest when the job's timeout ends.
    pub fn publish(&mut self, now: Millis, token: Token, job: NewJob) -> Result<(), Backlogged<NewJob>> {
        self.publish_as(now, token, job, |job, config| job.into_entry(config.compression))
    }

    /// Asks for jobs to be handed out; they are not renewed, and settled by their leases. Answered once by
    /// [`Event::Answered`]: at the first jobs, or with none when the wait is over.
    pub fn take(&mut self, now: Millis, token: Token, want: Take) -> Result<(), Backlogged<Take>> {
        self.enter(now);
        if self.base.draining {
            self.base.answer(token, Err(self.base.closed()));
            return Ok(());
        }
        if let Err(invalid) = want.validate() {
            self.base.answer(token, Err(invalid.into()));
            return Ok(());
        }
        self.consumer.take(&mut self.base, token, want)?;
        self.after();
        Ok(())
    }

    /// Asks for something else. Answered once by [`Event::Answered`], at the latest when the request's timeout ends.
    pub fn request(
        &mut self,
        now: Millis,
        token: Token,
        request: Request,
    ) -> Result<(), Backlogged<Request>> {
        self.enter(now);
        if self.is_closed() {
            self.base.answer(token, Err(self.base.closed()));
            return Ok(());
        }
        let Request { ask, timeout_ms } = request;
        if let Err(fault) = ask.validate() {
            self.base.answer(token, Err(fault));
            return Ok(());
        }
        match ask {
            Ask::Settle { .. } | Ask::Extend { .. }
                if self.settler.asks() >= self.base.config.pending_requests =>
            {
                return Err(Backlogged(Request { ask, timeout_ms }));
            }
            Ask::Cancel { .. } | Ask::Reschedule { .. }
                if self.changes() >= self.base.config.pending_requests =>
            {
                return Err(Backlogged(Request { ask, timeout_ms }));
            }
            Ask::Settle { lease, verdict } => {
                self.settler.await_answer(&mut self.base, token, timeout_ms);
                let settlement = verdict.settlement(lease.retry_ms);
                let of = (lease.id, lease.fence);
                self.settler.settle(&self.base, &lease.queue, of, settlement, Whose::Caller(token));
            }
            Ask::Extend { lease, lease_ms } => {
                self.settler.await_answer(&mut self.base, token, timeout_ms);
                let of = (lease.id, lease.fence);
                self.settler.extend(&self.base, &lease.queue, of, lease_ms, Whose::Caller(token));
            }
            Ask::Cancel { queue, ids } => {
                let changer = self.changer.get_or_make();
                changer.change(&mut self.base, token, queue, Change::Cancel(ids), timeout_ms);
            }
            Ask::Reschedule { queue, jobs } => {
                let changer = self.changer.get_or_make();
                changer.change(&mut self.base, token, queue, Change::Reschedule(jobs), timeout_ms);
            }
            ask => {
                let request = Request { ask, timeout_ms };
                self.requests.request(&mut self.base, &mut self.flights, token, request)?;
            }
        }
        Ok(())
    }

    /// Asks for [`Ask::Open`]: a program that asks for nothing else does not link the machines for all else.
    pub fn open(
        &mut self,
        now: Millis,
        token: Token,
        shards: Shards,
        timeout_ms: u64,
    ) -> Result<(), Backlogged<Request>> {
        self.enter(now);
        if self.is_closed() {
            self.base.answer(token, Err(self.base.closed()));
            return Ok(());
        }
        let request = Request { ask: Ask::Open { shards }, timeout_ms };
        self.requests.request(&mut self.base, &mut self.flights, token, request)
    }

    /// A managed job ends. A second call, and one after the job was abandoned, does nothing.
    pub fn settle(&mut self, now: Millis, held: Held, verdict: Verdict) {
        self.enter(now);
        self.consumer.settle(&mut self.base, &mut self.settler, held, verdict);
        self.after();
    }

    /// Nobody waits for the token any more. Jobs that a take is still granted are released unspent; a publish and a
    /// request are carried out all the same.
    pub fn forget(&mut self, now: Millis, token: Token) {
        self.enter(now);
        let base = &mut self.base;
        let known = self.publisher.machine().is_some_and(|publisher| publisher.forget(base, token))
            || self.settler.forget(base, token)
            || self.changer.machine().is_some_and(|changer| changer.forget(base, token));
        if !known {
            self.requests.forget(&mut self.base, token);
            self.consumer.forget(&mut self.base, token);
        }
        self.after();
    }

    /// Takes nothing new, answers takes, sends what is in hand, waits for the managed jobs to be settled, and gives up the
    /// pump lease; then [`Event::Drained`].
    pub fn drain(&mut self, now: Millis) {
        self.enter(now);
        if !self.base.draining {
            self.base.draining = true;
            self.consumer.drain(&mut self.base);
        }
        self.after();
    }

    /// The next round trip to make, if there is one that `credit` can pay for.
    ///
    /// Under a finite credit take all events first, and pay for the jobs that they hand out: `credit` is what is left
    /// then. The engine asks for no job whose delivery and verdict that does not cover, and releases what resends have
    /// made too dear.
    #[must_use]
    pub fn poll_transmit(&mut self, credit: Credit) -> Option<Transmit<'_>> {
        let Engine { base, flights, publisher, settler, changer, consumer, pump, watch, .. } = self;
        base.allowance = (credit != Credit::UNLIMITED).then_some(credit);
        if credit.trips == 0 {
            return None;
        }
        let spender = base.allowance.map(|credit| Spender::new(credit, base, settler));
        let purse = |consumer: &Consumer| {
            spender.as_ref().map_or(Purse::UNLIMITED, |spender| spender.purse(consumer))
        };
        let least = spender.as_ref().map_or(0, |spender| spender.least(base, consumer));
        let leaves = base.leaves();
        for machine in [publisher.machine(), changer.machine()].into_iter().flatten() {
            machine.form(base, flights);
        }
        consumer.form(base, flights, purse, leaves);
        pump.form(base, flights);
        settler.form(base, flights, spender.is_some(), least, leaves, consumer);
        watch.form(base, flights);
        let has_free_trip = spender.as_ref().is_none_or(|spender| spender.has_free_trip(consumer, flights));
        let ticket = flights.transmit(base, !has_free_trip)?;
        if let Some(allowance) = &mut base.allowance {
            allowance.trips -= 1;
        }
        flights.transmitted(ticket)
    }

    /// What to tell the application next.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.base.events.pop_front()
    }

    /// When to call [`handle_timeout`](Engine::handle_timeout), at the latest; after all else is polled.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Millis, TimeoutReason)> {
        let (at, timer) = self.base.wheel.next()?;
        let reason = match timer {
            Timer::Overdue(_) | Timer::Resend(_) | Timer::Gap => TimeoutReason::Flight,
            Timer::PublishDeadline(_) | Timer::AskDeadline(_) | Timer::TakeDeadline(_) => {
                TimeoutReason::Deadline
            }
            Timer::Renew(_) | Timer::LeaseEnd(_) => TimeoutReason::Lease,
            Timer::Poll(_) => TimeoutReason::Poll,
            Timer::Peek(_) | Timer::Tend(_) => TimeoutReason::Pump,
        };
        Some((at, reason))
    }

    fn enter(&mut self, now: Millis) {
        self.base.now = self.base.now.max(now);
    }

    /// Stops for good: jobs published from now on would reach nobody. Jobs in hand may end.
    fn end(&mut self, layout: u32, shards: Shards) {
        let Engine { base, flights, publisher, settler, changer, consumer, requests, .. } = self;
        base.other = Some((layout, shards));
        base.draining = true;
        let fault = base.closed();
        base.events.push_back(Event::Ended(fault.clone()));
        let machines = [publisher.machine(), changer.machine()].into_iter().flatten();
        let callers: Vec<Token> = machines.flat_map(|machine| machine.callers()).collect();
        for token in callers.into_iter().chain(requests.callers()).chain(settler.take_callers()) {
            base.answer(token, Err(fault.clone()));
        }
        flights.drop_calls();
        (*publisher, *changer, *requests) = (OnDemand::default(), OnDemand::default(), Requests::default());
        consumer.drain(base);
    }

    /// What follows from a change, whatever it was.
    fn after(&mut self) {
        let active = match self.base.config.pump {
            Pumping::Never => false,
            Pumping::WhileTaking => self.consumer.has_waiting_takes(),
            Pumping::WhenDue | Pumping::Always => true,
        };
        self.pump.set_active(&self.base, active);
        if self.base.draining && !self.drained && self.is_idle() {
            self.drained = true;
            self.base.events.push_back(Event::Drained);
        }
    }

    /// Whether requests are refused too: while it drains, leases can still be settled.
    fn is_closed(&self) -> bool {
        self.drained || self.base.other.is_some()
    }

    /// How many asks to cancel and reschedule are in hand.
    fn changes(&self) -> usize {
        self.changer.get().map_or(0, Changer::len)
    }

    fn handle_timer(&mut self, timer: Timer) {
        let base = &mut self.base;
        match timer {
            Timer::Overdue(ticket) => {
                let landed = self.flights.handle_overdue(base, ticket);
                self.land_all(landed);
            }
            Timer::Resend(batch) => {
                let landed = self.flights.handle_resend(base, batch);
                self.land_all(landed);
            }
            Timer::PublishDeadline(token) => {
                if let Some(publisher) = self.publisher.machine() {
                    publisher.handle_deadline(base, &mut self.flights, token);
                }
            }
            Timer::AskDeadline(token) => {
                let flights = &mut self.flights;
                let changer = self.changer.machine();
                if !self.settler.handle_deadline(base, flights, token)
                    && !changer.is_some_and(|changer| changer.handle_deadline(base, flights, token))
                {
                    self.requests.handle_deadline(base, flights, token);
                }
            }
            Timer::TakeDeadline(token) => self.consumer.handle_take_deadline(base, &self.flights, token),
            Timer::Renew(held) => self.consumer.handle_renew(base, &mut self.settler, held),
            Timer::LeaseEnd(held) => self.consumer.abandon(base, held),
            Timer::Poll(queue) => self.consumer.handle_poll(base, &queue),
            Timer::Gap => base.handle_gap(),
            Timer::Peek(shard) => self.pump.handle_peek_timer(base, shard),
            Timer::Tend(queue) => {
                if !self.pump.handle_entry(base, base.config.shards.of(&queue), &queue) {
                    return;
                }
                let own = base.config.pump == Pumping::WhenDue && self.consumer.is_subscribed(&queue);
                if (own || self.consumer.wants(base, &queue)) && !self.consumer.is_closed(&queue) {
                    self.consumer.hunger(&queue);
                } else {
                    self.pump.tend(&queue);
                }
            }
        }
    }

    fn sample(&mut self, sent: Millis, time: UnixMicros) {
        if let Sample::Stepped { forward_us } = self.base.clock.sample(sent, self.base.now, time) {
            if let Ok(forward_us @ 1..) = u64::try_from(forward_us) {
                self.consumer.shorten_leases(&mut self.base, forward_us.div_ceil(1000));
            }
            self.start_over();
        }
    }

    /// Who waits for jobs may stand on no waiting list any more.
    fn start_over(&mut self) {
        if self.base.config.pump != Pumping::WhenDue {
            self.consumer.hunger_all();
        }
        self.pump.look_again(&mut self.base);
    }

    fn land_all(&mut self, landed: Vec<Landed>) {
        for landed in landed {
            self.land(landed);
        }
    }

    fn land(&mut self, landed: Landed) {
        let base = &mut self.base;
        match landed.batch.lane.clone() {
            Lane::Publish(queue) => land(self.publisher.machine(), base, &queue, landed),
            Lane::Change(queue) => land(self.changer.machine(), base, &queue, landed),
            Lane::Settle(queue) => self.settler.handle_settled(base, &queue, landed),
            Lane::Extend(queue, lease_ms) => {
                for renewal in self.settler.handle_extended(base, (queue, lease_ms), landed) {
                    self.consumer.handle_renewed(base, &renewal);
                }
            }
            Lane::Reserve(queue) => {
                match self.consumer.handle_landed(base, &mut self.settler, &queue, landed) {
                    Some(learnt) if learnt.open && !learnt.more => {
                        self.pump.learn(base, &queue, learnt.next, learnt.time);
                    }
                    Some(learnt) if !learnt.open && base.config.pump == Pumping::WhenDue => {
                        self.pump.tend(&queue);
                    }
                    _ => {}
                }
            }
            Lane::Peek(shard) => {
                for queue in self.pump.handle_peeked(base, shard, landed) {
                    self.consumer.hunger(&queue);
                }
            }
            Lane::Tend(queue) => self.pump.handle_tended(base, &queue, landed),
            Lane::Ask(token) => {
                if let Seen::Other(..) = self.watch.learn(base, &landed) {
                    self.watch.look_again();
                }
                self.requests.handle_landed(base, &mut self.flights, token, landed);
            }
            Lane::Watch => match self.watch.handle_landed(base, landed) {
                Seen::Same => {}
                Seen::Anew => self.start_over(),
                Seen::Other(layout, shards) => self.end(layout, shards),
            },
        }
    }
}

fn land(machine: Option<&mut dyn Machine>, base: &mut Base, queue: &QueueName, landed: Landed) {
    if let Some(machine) = machine {
        machine.handle_landed(base, queue, landed);
    }
}
