//! The task that owns an engine: it carries what the engine says to the link, the callers and the handlers, and what
//! they answer back. It decides nothing itself.

mod crew;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use delayline_core::recording::Recorded;
use delayline_core::{
    Answer, Ask, Backlogged, Credit, Due, Event, Held, Job as Delivery, Lease, Millis, NewJob, QueueName,
    Refusal, Request, Token, Verdict, Wakeup,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;

use crate::Error;
use crate::clock::{Alarm, Clock};
use crate::held::HeldTime;
use crate::inbox::{Inboxes, Life, Order, Question, Reply, Signal, Stop, Want, leases};
use crate::link::{Landed, Link};
use crate::meters::{Kind, Meters};
use crate::runner::{Runner, Running};
use crate::site::Site;

pub(crate) use crew::{Plan, start};

const BATCH: usize = 256;
/// How often orders that wait for room are looked through for those whose time is over.
const SWEEP_MS: u64 = 50;
/// What is left for saying goodbye after the grace is over.
const LAST_MS: u64 = 2_000;
const GIVE_BACK_MS: u64 = 30_000;
const OWN_TOKENS: u64 = 1 << 63;

struct Owner {
    clock: Clock,
    held: Option<Arc<HeldTime>>,
    site: Arc<Site>,
    meters: Meters,
    grace_ms: u64,
    listening: bool,
    runner: Option<Runner>,
    signal: tokio::sync::mpsc::UnboundedSender<Signal>,
    works: HashMap<Held, Work>,
    waiters: HashMap<Token, Waiter>,
    /// Orders for which the engine has no room yet.
    waiting: VecDeque<Order>,
    /// Tests that wait until nothing more is to be done.
    idlers: Vec<oneshot::Sender<()>>,
    sweep: Option<Millis>,
    own_tokens: u64,
    stopping: Option<Stopping>,
    /// Why the engine stops by itself.
    ended: Option<Error>,
    is_hushed: bool,
}

/// A managed job, from its delivery until its verdict is carried out.
struct Work {
    queue: QueueName,
    attempt: u16,
    /// Its number in a test's journal.
    run: Option<u64>,
    running: Option<Running>,
    verdict: Option<Kind>,
}

/// Who waits for an answer, and what it will be counted as.
struct Waiter {
    answer: oneshot::Sender<Reply>,
    about: About,
}

enum About {
    Publish(QueueName),
    Settle(QueueName, Kind),
    Other,
}

/// When patience ends, once a stop was asked for.
#[derive(Clone, Copy)]
struct Stopping {
    at: Millis,
    is_last: bool,
}

impl Owner {
    async fn run<L: Link>(
        mut self,
        mut engine: Recorded,
        mut link: L,
        mut inboxes: Inboxes,
        mut alarm: Alarm,
    ) {
        let mut flights = FuturesUnordered::new();
        let (mut orders, mut signals, mut wakeups) =
            (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let (mut orders_open, mut questions_open, mut stop_open) = (true, true, true);
        let mut armed = None;
        let mut stirred = true;
        link.warm_up().await;
        if self.listening {
            link.listen();
        }
        loop {
            loop {
                let mut moved = false;
                while let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) {
                    moved = true;
                    flights.push(link.send(transmit));
                }
                while let Some(event) = engine.poll_event() {
                    moved = true;
                    self.handle(&mut engine, event);
                }
                if !moved {
                    break;
                }
            }
            self.heed_end(&mut inboxes);
            self.stir(stirred);
            let now = self.clock.now();
            if self.is_over(now) || (engine.is_drained() && self.is_hushed && flights.is_empty()) {
                inboxes.life.send_replace(Life::Ended);
                return;
            }
            if engine.is_drained() && !self.is_hushed {
                // Who was still to be woken passes the wake on.
                link.hush().await;
                self.is_hushed = true;
                let now = self.clock.now();
                while let Ok(wakeup) = inboxes.wakeups.try_recv() {
                    engine.handle_wakeup(now, wakeup);
                }
                continue;
            }
            let timeout = engine.poll_timeout().map(|(at, _)| at);
            let next =
                [timeout, self.sweep, self.stopping.map(|stopping| stopping.at)].into_iter().flatten().min();
            if next.is_some_and(|at| at <= now) {
                stirred = true;
                engine.handle_timeout(now);
                self.handle_sweep(now);
                self.handle_stop(&mut engine, now);
                tokio::task::consume_budget().await;
                self.admit(&mut engine);
                continue;
            }
            if next != armed {
                alarm.set(next);
                armed = next;
            }
            stirred = true;
            tokio::select! { biased;
                Some((ticket, landed)) = flights.next(), if !flights.is_empty() => {
                    self.count_trip(&landed);
                    match landed {
                        Landed::Replies(replies) => engine.handle_replies(self.clock.now(), ticket, replies),
                        Landed::Lost => engine.handle_loss(self.clock.now(), ticket),
                    }
                }
                1.. = inboxes.signals.recv_many(&mut signals, BATCH) => {
                    let now = self.clock.now();
                    stirred = signals.iter().any(|signal| !matches!(signal, Signal::Idle(_)));
                    signals.drain(..).for_each(|signal| self.obey(&mut engine, now, signal));
                }
                1.. = inboxes.wakeups.recv_many(&mut wakeups, BATCH) => {
                    let now = self.clock.now();
                    wakeups.drain(..).for_each(|wakeup| engine.handle_wakeup(now, wakeup));
                    if inboxes.missed.swap(false, Ordering::AcqRel) {
                        engine.handle_wakeup(now, Wakeup::Unsubscribed);
                        engine.handle_wakeup(now, Wakeup::Subscribed);
                    }
                }
                question = inboxes.questions.recv(), if questions_open => match question {
                    Some(questions) => for question in questions {
                        if matches!(question.want, Want::Take(_)) && !self.listening {
                            self.listening = true;
                            link.listen();
                        }
                        self.ask(&mut engine, question);
                    },
                    None => questions_open = false,
                },
                count = inboxes.orders.recv_many(&mut orders, BATCH), if orders_open => {
                    orders_open = count > 0;
                    self.waiting.extend(orders.drain(..).flatten());
                }
                changed = inboxes.stop.changed(), if stop_open => stop_open = changed.is_ok(),
                () = alarm.rings(), if armed.is_some() => {}
                () = rest(&mut self.idlers), if !self.idlers.is_empty() => {}
            }
            self.stir(stirred);
            self.admit(&mut engine);
            self.heed_stop(&mut inboxes, orders_open || questions_open);
            if self.stopping.is_some() && !orders_open && !questions_open && self.waiting.is_empty() {
                engine.drain(self.clock.now());
            }
        }
    }

    /// Hands waiting orders to the engine while it has room.
    fn admit(&mut self, engine: &mut Recorded) {
        if self.waiting.is_empty() {
            return;
        }
        let now = self.clock.now();
        while engine.room() > 0 {
            let Some(order) = self.waiting.pop_front() else { break };
            let Order { job, called, answer, fails_fast, _place: place } = order;
            let Some(job) = elapsed(job, called, now) else {
                let _ = answer.send(Err(self.site.not_sent(None)));
                continue;
            };
            let token = self.own_token();
            let about = About::Publish(job.queue.clone());
            match engine.publish(now, token, *job) {
                Ok(()) => drop(self.waiters.insert(token, Waiter { answer, about })),
                Err(Backlogged(job)) => {
                    let job = Box::new(job);
                    self.waiting.push_front(Order { job, called: now, answer, fails_fast, _place: place });
                    break;
                }
            }
        }
        // All are of one client, and so of one mind.
        if self.waiting.front().is_some_and(|order| order.fails_fast) {
            for order in self.waiting.drain(..) {
                let _ = order.answer.send(Err(Error::Busy));
            }
        }
        self.sweep = if self.waiting.is_empty() { None } else { self.sweep.or(Some(now + SWEEP_MS)) };
    }

    /// Answers the orders whose callers wait no longer.
    fn handle_sweep(&mut self, now: Millis) {
        if self.sweep.is_none_or(|at| at > now) {
            return;
        }
        self.sweep = Some(now + SWEEP_MS);
        for _ in 0..self.waiting.len() {
            let Some(order) = self.waiting.pop_front() else { break };
            if now.since(order.called) >= order.job.timeout_ms {
                let _ = order.answer.send(Err(self.site.not_sent(None)));
            } else {
                self.waiting.push_back(order);
            }
        }
    }

    fn ask(&mut self, engine: &mut Recorded, question: Question) {
        let Question { token, want, answer } = question;
        if answer.is_closed() {
            return;
        }
        let now = self.clock.now();
        let about = About::of(&want);
        let is_full = match want {
            Want::Take(take) => engine.take(now, token, take).is_err(),
            Want::Request(request) => engine.request(now, token, request).is_err(),
        };
        if is_full {
            let _ = answer.send(Err(Error::Busy));
        } else {
            self.waiters.insert(token, Waiter { answer, about });
        }
    }

    fn obey(&mut self, engine: &mut Recorded, now: Millis, signal: Signal) {
        match signal {
            Signal::Settle { held, queue, verdict, ran } => {
                self.meters.of(&queue).ran(ran);
                if let Some(work) = self.works.get_mut(&held) {
                    (work.running, work.verdict) = (None, Some(Kind::from(&verdict)));
                    if let Some((run, time)) = work.run.zip(self.held.as_ref()) {
                        time.judged(run, &verdict);
                    }
                }
                engine.settle(now, held, verdict);
            }
            Signal::Panic => panic!("a test wanted to see this engine panic"),
            Signal::Idle(idle) => self.idlers.push(idle),
            Signal::Forget(token) => {
                self.waiters.remove(&token);
                engine.forget(now, token);
            }
            Signal::GiveBack(leases) => self.give_back(engine, leases),
        }
    }

    fn handle(&mut self, engine: &mut Recorded, event: Event) {
        match event {
            Event::Answered { token, answer } => {
                let Some(Waiter { answer: waiter, about }) = self.waiters.remove(&token) else { return };
                let answer = answer.map_err(|fault| self.site.error(fault));
                if let Ok(answer) = &answer {
                    self.count_answer(about, answer);
                }
                if let Err(Ok(Answer::Taken(jobs))) = waiter.send(answer) {
                    self.give_back(engine, leases(jobs));
                }
            }
            Event::Run(delivery) => self.start(engine, delivery),
            Event::Abandon(held) => self.lose(held),
            Event::Settled { held, outcome } => {
                tracing::trace!(?outcome, "settled");
                let Some(work) = self.works.remove(&held) else { return };
                if let Some(kind) = work.verdict {
                    self.meters.of(&work.queue).settled(kind, Some(work.attempt), outcome);
                }
                if let Some((run, time)) = work.run.zip(self.held.as_ref()) {
                    time.settled(run, outcome);
                }
            }
            Event::Unsettled(held) => drop(self.works.remove(&held)),
            Event::Tended { queue, ended, expired, .. } => self.meters.of(&queue).tended(ended, expired),
            Event::Fault(fault) => {
                let error = self.site.error(fault);
                tracing::warn!(%error, "the queue is in trouble, and goes on trying");
            }
            Event::Ended(fault) => self.ended = Some(self.site.error(fault)),
            Event::Drained => {}
        }
    }

    fn start(&mut self, engine: &mut Recorded, delivery: Delivery) {
        let (Some(held), Some(runner)) = (delivery.held, &self.runner) else { return };
        let (queue, attempt) = (delivery.lease.queue.clone(), delivery.attempt);
        self.meters.of(&queue).delivered(&delivery);
        let run = self.held.as_ref().map(|time| time.begin(&delivery));
        let running = runner.start(held, run, delivery, self.signal.clone());
        if running.is_none() {
            engine.settle(self.clock.now(), held, Verdict::Release);
        }
        self.works.insert(held, Work { queue, attempt, run, running, verdict: None });
    }

    /// A lease is lost: whatever its handler says is ignored from now on.
    fn lose(&mut self, held: Held) {
        let Some(Work { queue, running: Some(running), .. }) = self.works.remove(&held) else { return };
        let what = self.runner.as_ref().map(|runner| runner.lost_lease).unwrap_or_default();
        tracing::warn!(%queue, ?what, "the lease of a job that is still being run is lost");
        self.meters.of(&queue).lease_lost();
        running.lose(what);
    }

    fn count_trip(&mut self, landed: &Landed) {
        match landed {
            Landed::Replies(replies) => {
                let refused = delayline_core::Reply::Refused(Refusal::NotConnected);
                if replies.first() != Some(&refused) {
                    self.meters.round_trip(true);
                }
            }
            Landed::Lost => self.meters.round_trip(false),
        }
    }

    fn count_answer(&mut self, about: About, answer: &Answer) {
        match (about, answer) {
            (About::Publish(queue), Answer::Published { .. }) => {
                self.meters.of(&queue).published();
            }
            (About::Settle(queue, kind), Answer::Settled(outcome)) => {
                self.meters.of(&queue).settled(kind, None, *outcome);
            }
            (_, Answer::Taken(jobs)) => {
                for delivery in jobs {
                    self.meters.of(&delivery.lease.queue).delivered(delivery);
                }
            }
            _ => {}
        }
    }

    /// Tells a test that something is being done.
    fn stir(&self, is_so: bool) {
        if let Some(time) = self.held.as_ref().filter(|_| is_so) {
            time.stir();
        }
    }

    /// Releases jobs that nobody waits for, unspent.
    fn give_back(&mut self, engine: &mut Recorded, leases: Vec<Lease>) {
        let now = self.clock.now();
        for lease in leases {
            let ask = Ask::Settle { lease, verdict: Verdict::Release };
            let token = self.own_token();
            if engine.request(now, token, Request { ask, timeout_ms: GIVE_BACK_MS }).is_err() {
                tracing::warn!("no room to give a job back: its lease will end");
            }
        }
    }

    fn own_token(&mut self) -> Token {
        self.own_tokens += 1;
        Token(self.own_tokens)
    }

    /// Takes note of a wish to stop, and of callers that are all gone.
    fn heed_stop(&mut self, inboxes: &mut Inboxes, open: bool) {
        let stop = *inboxes.stop.borrow_and_update();
        let now = self.clock.now();
        match &mut self.stopping {
            Some(stopping) if stop == Stop::Now && !stopping.is_last => stopping.at = stopping.at.min(now),
            None if stop != Stop::Not || !open => {
                inboxes.orders.close();
                inboxes.questions.close();
                inboxes.life.send_replace(Life::Closing);
                let grace_ms = if stop == Stop::Now { 0 } else { self.grace_ms };
                self.stopping = Some(Stopping { at: now + grace_ms, is_last: false });
            }
            _ => {}
        }
    }

    /// The engine takes nothing new: what runs may end, within the grace.
    fn heed_end(&mut self, inboxes: &mut Inboxes) {
        let Some(error) = self.ended.take() else { return };
        tracing::error!(%error, "stopping for good");
        inboxes.end(&error);
        for order in self.waiting.drain(..) {
            let _ = order.answer.send(Err(error.clone()));
        }
        let at = self.clock.now() + self.grace_ms;
        self.stopping.get_or_insert(Stopping { at, is_last: false });
    }

    /// The grace is over: what is still held goes back, what still waits is refused.
    fn handle_stop(&mut self, engine: &mut Recorded, now: Millis) {
        if self.stopping.is_none_or(|stopping| stopping.at > now || stopping.is_last) {
            return;
        }
        for (held, work) in &mut self.works {
            if let Some(running) = work.running.take() {
                running.stop();
                engine.settle(now, *held, Verdict::Release);
            }
        }
        for order in self.waiting.drain(..) {
            let _ = order.answer.send(Err(self.site.not_sent(None)));
        }
        engine.drain(now);
        self.stopping = Some(Stopping { at: now + LAST_MS, is_last: true });
    }

    fn is_over(&self, now: Millis) -> bool {
        self.stopping.is_some_and(|stopping| stopping.is_last && stopping.at <= now)
    }
}

/// An engine that panics renews no leases: its handlers have lost theirs.
impl Drop for Owner {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the engine for {} panicked: the jobs that it ran come back", self.site.address);
        }
        let what = self.runner.as_ref().map(|runner| runner.lost_lease).unwrap_or_default();
        for running in self.works.values().filter_map(|work| work.running.as_ref()) {
            running.lose(what);
        }
    }
}

impl About {
    fn of(want: &Want) -> About {
        match want {
            Want::Request(Request { ask: Ask::Settle { lease, verdict }, .. }) => {
                About::Settle(lease.queue.clone(), Kind::from(verdict))
            }
            Want::Request(_) | Want::Take(_) => About::Other,
        }
    }
}

/// Never ends; once nothing else is to be done, whoever waits for that knows.
async fn rest(idlers: &mut Vec<oneshot::Sender<()>>) {
    for idler in idlers.drain(..) {
        let _ = idler.send(());
    }
    std::future::pending::<()>().await;
}

/// What has passed since the call is taken off, a millisecond less, for the clock's own rounding; `None` if the caller
/// waits no longer.
fn elapsed(mut job: Box<NewJob>, called: Millis, now: Millis) -> Option<Box<NewJob>> {
    let passed = now.since(called);
    job.timeout_ms = job.timeout_ms.checked_sub(passed).filter(|left| *left > 0 || passed == 0)?;
    if let Due::After { ms } = &mut job.due {
        *ms = ms.saturating_sub(passed.saturating_sub(1));
    }
    Some(job)
}
