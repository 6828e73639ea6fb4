//! The task that owns an engine: it carries what the engine says to the link, the callers and the handlers, and what
//! they answer back. It decides nothing itself.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use delayline_core::{
    Answer, Ask, Backlogged, Config, Credit, Due, Engine, Event, Held, Job, Keyspace, Millis, NewJob, Prefix,
    Pumping, Request, Token, Verdict, Wakeup,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::Error;
use crate::clock::Clock;
use crate::entropy;
use crate::handler::Handlers;
use crate::inbox::{self, Desk, Inboxes, Order, Question, Reply, Signal, Stop, Want};
use crate::link::{Landed, Link, RedisLink, Trouble};
use crate::store::Store;

const BATCH: usize = 256;
/// How often orders that wait for room are looked through for those whose time is over.
const SWEEP_MS: u64 = 50;
/// What is left for saying goodbye after the grace is over.
const LAST_MS: u64 = 2_000;
const GIVE_BACK_MS: u64 = 30_000;
const OWN_TOKENS: u64 = 1 << 63;

/// What an engine is made of.
pub(crate) struct Plan {
    pub(crate) store: Store,
    pub(crate) prefix: Prefix,
    pub(crate) config: Config,
    pub(crate) grace: Duration,
    pub(crate) handlers: Option<Handlers>,
    pub(crate) trouble: Trouble,
}

/// Makes an engine on a thread of its own, and answers once it runs.
pub(crate) async fn start(plan: Plan) -> Result<Desk, Error> {
    let clock = Clock::start();
    let engine = Engine::new(plan.config, entropy::identity()?, clock.now())?;
    let (desk, inboxes, bell) = inbox::open(clock);
    let heads = engine.config().pump != Pumping::Never;
    let pumps = engine.config().pump == Pumping::Always;
    let owner = Owner {
        clock,
        grace_ms: crate::invalid::millis(plan.grace),
        listening: plan.handlers.is_some() || pumps,
        handlers: plan.handlers,
        signal: inboxes.signal.clone(),
        running: HashMap::new(),
        waiters: HashMap::new(),
        waiting: VecDeque::new(),
        sweep: None,
        own_tokens: OWN_TOKENS,
        stopping: None,
        is_hushed: false,
    };
    let (started, starts) = oneshot::channel();
    let thread = std::thread::Builder::new().name("delayline".to_owned());
    let spawned = thread.spawn(move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(started.send(Err(error))),
        };
        let _ = started.send(Ok(()));
        let identity = engine.identity();
        match plan.store {
            Store::Redis(client) => {
                let keys = Arc::new(Keyspace::new(&plan.prefix, engine.config().shards));
                let link = RedisLink::new(client, keys, plan.trouble, identity, heads, bell);
                runtime.block_on(owner.run(engine, link, inboxes));
            }
            #[cfg(feature = "memory")]
            Store::Memory(memory) => {
                let heads = heads.then_some(engine.config().shards);
                let link = crate::memory::MemoryLink::new(memory, identity, heads, bell);
                runtime.block_on(owner.run(engine, link, inboxes));
            }
        }
    });
    let refused = |error: std::io::Error| Error::System { what: "a thread", why: error.to_string() };
    spawned.map_err(refused)?;
    starts.await.map_err(|_| Error::Closed)?.map_err(refused)?;
    Ok(desk)
}

struct Owner {
    clock: Clock,
    grace_ms: u64,
    listening: bool,
    handlers: Option<Handlers>,
    signal: tokio::sync::mpsc::UnboundedSender<Signal>,
    running: HashMap<Held, AbortHandle>,
    waiters: HashMap<Token, oneshot::Sender<Reply>>,
    /// Orders for which the engine has no room yet.
    waiting: VecDeque<Order>,
    sweep: Option<Millis>,
    own_tokens: u64,
    stopping: Option<Stopping>,
    is_hushed: bool,
}

/// When patience ends, once a stop was asked for.
#[derive(Clone, Copy)]
struct Stopping {
    at: Millis,
    is_last: bool,
}

impl Owner {
    async fn run<L: Link>(mut self, mut engine: Engine, mut link: L, mut inboxes: Inboxes) {
        let mut flights = FuturesUnordered::new();
        let (mut orders, mut signals, mut wakeups) =
            (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let (mut orders_open, mut questions_open, mut stop_open) = (true, true, true);
        let sleep = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(sleep);
        let mut armed = None;
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
            let now = self.clock.now();
            if self.is_over(now) || (engine.is_drained() && self.is_hushed && flights.is_empty()) {
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
                engine.handle_timeout(now);
                self.handle_sweep(now);
                self.handle_stop(&mut engine, now);
                tokio::task::consume_budget().await;
                self.admit(&mut engine);
                continue;
            }
            if next != armed {
                if let Some(at) = next {
                    sleep.as_mut().reset(self.clock.instant(at));
                }
                armed = next;
            }
            tokio::select! { biased;
                Some((ticket, landed)) = flights.next(), if !flights.is_empty() => match landed {
                    Landed::Replies(replies) => engine.handle_replies(self.clock.now(), ticket, replies),
                    Landed::Lost => engine.handle_loss(self.clock.now(), ticket),
                },
                1.. = inboxes.signals.recv_many(&mut signals, BATCH) => {
                    let now = self.clock.now();
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
                () = &mut sleep, if armed.is_some() => {}
            }
            self.admit(&mut engine);
            self.heed_stop(&mut inboxes, orders_open || questions_open);
            if self.stopping.is_some() && !orders_open && !questions_open && self.waiting.is_empty() {
                engine.drain(self.clock.now());
            }
        }
    }

    /// Hands waiting orders to the engine while it has room.
    fn admit(&mut self, engine: &mut Engine) {
        if self.waiting.is_empty() {
            return;
        }
        let now = self.clock.now();
        while engine.room() > 0 {
            let Some(order) = self.waiting.pop_front() else { break };
            let Order { job, called, answer, _place: place } = order;
            let Some(job) = elapsed(job, called, now) else {
                let _ = answer.send(Err(Error::NotSent { why: None }));
                continue;
            };
            let token = self.own_token();
            match engine.publish(now, token, job) {
                Ok(()) => drop(self.waiters.insert(token, answer)),
                Err(Backlogged(job)) => {
                    self.waiting.push_front(Order { job, called: now, answer, _place: place });
                    break;
                }
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
                let _ = order.answer.send(Err(Error::NotSent { why: None }));
            } else {
                self.waiting.push_back(order);
            }
        }
    }

    fn ask(&mut self, engine: &mut Engine, question: Question) {
        let Question { token, want, answer } = question;
        if answer.is_closed() {
            return;
        }
        let now = self.clock.now();
        let is_full = match want {
            Want::Take(take) => engine.take(now, token, take).is_err(),
            Want::Request(request) => engine.request(now, token, request).is_err(),
        };
        if is_full {
            let _ = answer.send(Err(Error::Busy));
        } else {
            self.waiters.insert(token, answer);
        }
    }

    fn obey(&mut self, engine: &mut Engine, now: Millis, signal: Signal) {
        match signal {
            Signal::Settle(held, verdict) => {
                self.running.remove(&held);
                engine.settle(now, held, verdict);
            }
            Signal::Forget(token) => {
                self.waiters.remove(&token);
                engine.forget(now, token);
            }
            Signal::GiveBack(jobs) => self.give_back(engine, jobs),
        }
    }

    fn handle(&mut self, engine: &mut Engine, event: Event) {
        match event {
            Event::Answered { token, answer } => {
                let Some(waiter) = self.waiters.remove(&token) else { return };
                if let Err(Ok(Answer::Taken(jobs))) = waiter.send(answer.map_err(Error::from)) {
                    self.give_back(engine, jobs);
                }
            }
            Event::Run(job) => self.start(engine, job),
            Event::Abandon(held) => {
                if let Some(task) = self.running.remove(&held) {
                    tracing::warn!("lost the lease of a job that is still being run: it is aborted");
                    task.abort();
                }
            }
            Event::Settled { outcome, .. } => tracing::trace!(?outcome, "settled"),
            Event::Fault(fault) => tracing::warn!(%fault, "the queue reports"),
            Event::Drained => {}
        }
    }

    fn start(&mut self, engine: &mut Engine, job: Job) {
        let Some(held) = job.held else { return };
        let handlers = self.handlers.as_ref();
        match handlers.and_then(|handlers| handlers.start(held, job, self.signal.clone())) {
            Some(task) => drop(self.running.insert(held, task)),
            None => engine.settle(self.clock.now(), held, Verdict::Release),
        }
    }

    /// Releases jobs that nobody waits for, unspent.
    fn give_back(&mut self, engine: &mut Engine, jobs: Vec<Job>) {
        let now = self.clock.now();
        for job in jobs {
            let ask = Ask::Settle { lease: job.lease, verdict: Verdict::Release };
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
                let grace_ms = if stop == Stop::Now { 0 } else { self.grace_ms };
                self.stopping = Some(Stopping { at: now + grace_ms, is_last: false });
            }
            _ => {}
        }
    }

    /// The grace is over: what is still held goes back, what still waits is refused.
    fn handle_stop(&mut self, engine: &mut Engine, now: Millis) {
        if self.stopping.is_none_or(|stopping| stopping.at > now || stopping.is_last) {
            return;
        }
        for (held, task) in self.running.drain() {
            task.abort();
            engine.settle(now, held, Verdict::Release);
        }
        for order in self.waiting.drain(..) {
            let _ = order.answer.send(Err(Error::NotSent { why: None }));
        }
        engine.drain(now);
        self.stopping = Some(Stopping { at: now + LAST_MS, is_last: true });
    }

    fn is_over(&self, now: Millis) -> bool {
        self.stopping.is_some_and(|stopping| stopping.is_last && stopping.at <= now)
    }
}

/// What has passed since the call is taken off, a millisecond less, for the clock's own rounding; `None` if the caller
/// waits no longer.
fn elapsed(mut job: NewJob, called: Millis, now: Millis) -> Option<NewJob> {
    let passed = now.since(called);
    job.timeout_ms = job.timeout_ms.checked_sub(passed).filter(|left| *left > 0 || passed == 0)?;
    if let Due::After { ms } = &mut job.due {
        *ms = ms.saturating_sub(passed.saturating_sub(1));
    }
    Some(job)
}
