//! What goes in and out of an engine's thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use delayline_core::{
    Answer, Ask, Held, Job, Lease, Millis, NewJob, QueueName, Request, Take, Token, Verdict, Wakeup,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::Error;
use crate::clock::Clock;
use crate::link::lock;
use crate::site::Site;

/// What waits in front of the engine, in bytes: beside the engine's own backlog.
const WAITING_BYTES: u32 = 8 << 20;
const LEAST_COST: u32 = 1 << 10;
const QUESTIONS: usize = 1_024;
const WAKEUPS: usize = 1_024;
const SPARE: Duration = Duration::from_secs(5);

pub(crate) type Reply = Result<Answer, Error>;

/// A job to be published; boxed, since it is large and goes through several hands.
pub(crate) struct Order {
    pub(crate) job: Box<NewJob>,
    pub(crate) called: Millis,
    pub(crate) answer: oneshot::Sender<Reply>,
    /// Whether its caller would rather be refused than wait for room in the engine.
    pub(crate) fails_fast: bool,
    /// What it takes of the room in front of the engine, with those that came together with it.
    pub(crate) _place: Arc<OwnedSemaphorePermit>,
}

impl Order {
    fn new(
        job: NewJob,
        called: Millis,
        fails_fast: bool,
        place: Arc<OwnedSemaphorePermit>,
    ) -> (Order, oneshot::Receiver<Reply>) {
        let (answer, answered) = oneshot::channel();
        (Order { job: Box::new(job), called, answer, fails_fast, _place: place }, answered)
    }
}

/// What a job takes of the room in front of the engine.
fn cost(job: &NewJob) -> u32 {
    u32::try_from(job.body.len()).unwrap_or(u32::MAX).saturating_add(LEAST_COST).min(WAITING_BYTES)
}

/// A take or a request.
pub(crate) struct Question {
    pub(crate) token: Token,
    pub(crate) want: Want,
    pub(crate) answer: oneshot::Sender<Reply>,
}

pub(crate) enum Want {
    Take(Take),
    Request(Request),
}

/// What is always heard.
pub(crate) enum Signal {
    /// How a managed job ended, and after how long.
    Settle {
        held: Held,
        queue: QueueName,
        verdict: Verdict,
        ran: Duration,
    },
    Forget(Token),
    /// Jobs that were handed out to nobody.
    GiveBack(Vec<Lease>),
    /// A test wants to see the engine panic.
    Panic,
    /// A test wants to know when nothing more is to be done at this time.
    Idle(oneshot::Sender<()>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Not,
    /// Finish what was begun, within the grace.
    Drain,
    /// Give back what is held, at once.
    Now,
}

/// How far an engine is. One that is gone without having ended has panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    /// It accepts nothing more.
    Closing,
    Ended,
}

/// An application's end of an engine. When the last clone is gone, the engine drains.
pub(crate) struct Desk {
    /// What comes together is handed to the engine together, so that it makes one batch.
    orders: mpsc::UnboundedSender<Vec<Order>>,
    places: Arc<Semaphore>,
    questions: mpsc::Sender<Vec<Question>>,
    pub(crate) signals: mpsc::UnboundedSender<Signal>,
    pub(crate) stop: watch::Sender<Stop>,
    pub(crate) life: watch::Receiver<Life>,
    /// Why the engine stopped by itself.
    why: Arc<OnceLock<Error>>,
    /// Closed when the engine's thread is done; nothing if it has none.
    pub(crate) thread: Option<Mutex<std::sync::mpsc::Receiver<()>>>,
    tokens: AtomicU64,
    clock: Clock,
    pub(crate) site: Arc<Site>,
}

/// The engine's end.
pub(crate) struct Inboxes {
    pub(crate) orders: mpsc::UnboundedReceiver<Vec<Order>>,
    pub(crate) questions: mpsc::Receiver<Vec<Question>>,
    pub(crate) signals: mpsc::UnboundedReceiver<Signal>,
    pub(crate) wakeups: mpsc::Receiver<Wakeup>,
    pub(crate) missed: Arc<AtomicBool>,
    pub(crate) stop: watch::Receiver<Stop>,
    pub(crate) signal: mpsc::UnboundedSender<Signal>,
    pub(crate) life: watch::Sender<Life>,
    why: Arc<OnceLock<Error>>,
}

/// Where notifications are put. It never waits: what does not fit is told as a gap.
#[derive(Clone)]
pub(crate) struct Bell {
    wakeups: mpsc::Sender<Wakeup>,
    missed: Arc<AtomicBool>,
}

pub(crate) fn open(clock: Clock, site: Arc<Site>) -> (Desk, Inboxes, Bell) {
    let (orders, orders_in) = mpsc::unbounded_channel();
    let (questions, questions_in) = mpsc::channel(QUESTIONS);
    let (signals, signals_in) = mpsc::unbounded_channel();
    let (wakeups, wakeups_in) = mpsc::channel(WAKEUPS);
    let (stop, stop_in) = watch::channel(Stop::Not);
    let (life_in, life) = watch::channel(Life::Running);
    let why = Arc::new(OnceLock::new());
    let missed = Arc::new(AtomicBool::new(false));
    let inboxes = Inboxes {
        orders: orders_in,
        questions: questions_in,
        signals: signals_in,
        wakeups: wakeups_in,
        missed: missed.clone(),
        stop: stop_in,
        signal: signals.clone(),
        life: life_in,
        why: why.clone(),
    };
    let places = Arc::new(Semaphore::new(WAITING_BYTES as usize));
    let tokens = AtomicU64::new(0);
    let desk =
        Desk { orders, places, questions, signals, stop, life, why, thread: None, tokens, clock, site };
    (desk, inboxes, Bell { wakeups, missed })
}

impl Inboxes {
    /// The engine stops by itself: whoever comes, and whoever has come and was not heard yet, is told why.
    pub(crate) fn end(&mut self, why: &Error) {
        let _ = self.why.set(why.clone());
        self.life.send_replace(Life::Closing);
        self.orders.close();
        self.questions.close();
        while let Ok(orders) = self.orders.try_recv() {
            for order in orders {
                let _ = order.answer.send(Err(why.clone()));
            }
        }
        while let Ok(questions) = self.questions.try_recv() {
            for question in questions {
                let _ = question.answer.send(Err(why.clone()));
            }
        }
    }
}

impl Desk {
    /// Hands jobs over together, in the order of the calls, and answers where the answer of each will come. They wait for
    /// room together, if they are not large and wait for equally long. Else those that must wait for room let those before
    /// them go ahead.
    pub(crate) async fn order(
        &self,
        jobs: Vec<Result<NewJob, Error>>,
        fail_fast: bool,
    ) -> Vec<Result<oneshot::Receiver<Reply>, Error>> {
        let (mut orders, mut answers) = (Vec::with_capacity(jobs.len()), Vec::with_capacity(jobs.len()));
        let called = self.clock.now();
        let place = self.place_of_all(&jobs, fail_fast).await;
        for job in jobs {
            let order = match (job, &place) {
                (Ok(job), Some(Ok(place))) => Ok(Order::new(job, called, fail_fast, place.clone())),
                (Ok(_), Some(Err(refused))) => Err(refused.clone()),
                (Ok(job), None) => self.admit(job, fail_fast, &mut orders).await,
                (Err(error), _) => Err(error),
            };
            answers.push(order.map(|(order, answered)| {
                orders.push(order);
                answered
            }));
        }
        self.hand_over(orders).await;
        answers
    }

    /// Room for all of them together, or why there is none; nothing if each is to wait for itself.
    async fn place_of_all(
        &self,
        jobs: &[Result<NewJob, Error>],
        fail_fast: bool,
    ) -> Option<Result<Arc<OwnedSemaphorePermit>, Error>> {
        let cost = jobs.iter().flatten().map(cost).fold(0, u32::saturating_add);
        let mut limits = jobs.iter().flatten().map(|job| job.timeout_ms);
        let limit = limits.next()?;
        if cost > WAITING_BYTES / 8 || self.orders.is_closed() || limits.any(|other| other != limit) {
            return None;
        }
        if let Ok(place) = self.places.clone().try_acquire_many_owned(cost) {
            return Some(Ok(Arc::new(place)));
        }
        if fail_fast {
            return None;
        }
        let place = self.places.clone().acquire_many_owned(cost);
        let place = self.clock.within(Duration::from_millis(limit), place).await.ok_or(Error::Busy);
        Some(place.and_then(|place| place.map(Arc::new).map_err(|_| Error::Closed)))
    }

    /// Hands one job over.
    pub(crate) async fn order_one(
        &self,
        job: NewJob,
        fail_fast: bool,
    ) -> Result<oneshot::Receiver<Reply>, Error> {
        let (order, answered) = self.admit(job, fail_fast, &mut Vec::new()).await?;
        self.hand_over(vec![order]).await;
        Ok(answered)
    }

    /// Orders that come after the close were never accepted: their callers are told so.
    async fn hand_over(&self, orders: Vec<Order>) {
        if let Err(mpsc::error::SendError(refused)) = self.orders.send(orders) {
            let closed = self.closed().await;
            for order in refused {
                let _ = order.answer.send(Err(closed.clone()));
            }
        }
    }

    /// Why nothing is accepted any more.
    async fn closed(&self) -> Error {
        let mut life = self.life.clone();
        let closed = life.wait_for(|life| *life != Life::Running).await;
        closed.map_or(Error::EnginePanicked, |_| self.why.get().cloned().unwrap_or(Error::Closed))
    }

    /// Until the engine has ended; an error if it stopped by itself, or never will, since it has panicked.
    pub(crate) async fn ended(&self) -> Result<(), Error> {
        let mut life = self.life.clone();
        let ended = life.wait_for(|life| *life == Life::Ended).await;
        ended.map(drop).map_err(|_| Error::EnginePanicked)?;
        self.why.get().map_or(Ok(()), |why| Err(why.clone()))
    }

    /// Why the engine does nothing any more, or will not much longer, if that is so.
    pub(crate) fn failure(&self) -> Option<Error> {
        let is_gone = self.life.has_changed().is_err();
        match *self.life.borrow() {
            Life::Ended => Some(self.why.get().cloned().unwrap_or(Error::Closed)),
            _ if is_gone => Some(Error::EnginePanicked),
            _ => self.why.get().cloned(),
        }
    }

    /// Waits, on the thread that calls, until the engine's own is done, but no longer than this.
    pub(crate) fn join(&self, limit: Duration) {
        if let Some(thread) = &self.thread {
            let _ = lock(thread).recv_timeout(limit);
        }
    }

    async fn admit(
        &self,
        job: NewJob,
        fail_fast: bool,
        before: &mut Vec<Order>,
    ) -> Result<(Order, oneshot::Receiver<Reply>), Error> {
        if self.orders.is_closed() {
            return Err(self.closed().await);
        }
        let called = self.clock.now();
        let limit = Duration::from_millis(job.timeout_ms);
        let cost = cost(&job);
        let place = match self.places.clone().try_acquire_many_owned(cost) {
            Ok(place) => place,
            Err(_) if fail_fast => return Err(Error::Busy),
            Err(_) => {
                self.hand_over(std::mem::take(before)).await;
                let place = self.places.clone().acquire_many_owned(cost);
                match self.clock.within(limit, place).await {
                    Some(place) => place.map_err(|_| Error::Closed)?,
                    None => return Err(Error::Busy),
                }
            }
        };
        Ok(Order::new(job, called, fail_fast, Arc::new(place)))
    }

    pub(crate) async fn request(&self, ask: Ask, limit: Duration) -> Reply {
        let timeout_ms = crate::invalid::millis(limit);
        self.ask(Want::Request(Request { ask, timeout_ms }), limit).await
    }

    pub(crate) async fn take(&self, take: Take, limit: Duration) -> Result<Vec<Job>, Error> {
        match self.ask(Want::Take(take), limit).await? {
            Answer::Taken(jobs) => Ok(jobs),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes requests together, and answers them in their order.
    pub(crate) async fn requests(&self, asks: Vec<Ask>, limit: Duration) -> Vec<Reply> {
        let timeout_ms = crate::invalid::millis(limit);
        let wants = asks.into_iter().map(|ask| Want::Request(Request { ask, timeout_ms }));
        let (questions, awaited): (Vec<_>, Vec<_>) = wants.map(|want| self.question(want)).unzip();
        let put = self.put(questions, limit).await;
        let mut replies = Vec::with_capacity(awaited.len());
        for awaited in awaited {
            replies.push(match &put {
                Ok(()) => awaited.answer(limit).await,
                Err(refused) => Err(refused.clone()),
            });
        }
        replies
    }

    async fn ask(&self, want: Want, limit: Duration) -> Reply {
        let (question, awaited) = self.question(want);
        self.put(vec![question], limit).await?;
        awaited.answer(limit).await
    }

    fn question(&self, want: Want) -> (Question, Awaited<'_>) {
        let (answer, answered) = oneshot::channel();
        let token = Token(self.tokens.fetch_add(1, Ordering::Relaxed));
        let is_take = matches!(want, Want::Take(_));
        let awaited = Awaited { desk: self, token, answered, is_take, is_over: false };
        (Question { token, want, answer }, awaited)
    }

    async fn put(&self, questions: Vec<Question>, limit: Duration) -> Result<(), Error> {
        match self.clock.within(limit, self.questions.send(questions)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(self.closed().await),
            None => Err(Error::Busy),
        }
    }
}

pub(crate) fn unexpected(answer: &Answer) -> Error {
    Error::Broken(format!("unexpected answer {answer:?}"))
}

/// An answer somebody waits for; who stops waiting gives back what was handed out.
struct Awaited<'a> {
    desk: &'a Desk,
    token: Token,
    answered: oneshot::Receiver<Reply>,
    is_take: bool,
    is_over: bool,
}

impl Awaited<'_> {
    async fn answer(mut self, limit: Duration) -> Reply {
        // The deadline is the engine's.
        let answer = self.desk.clock.within(limit.saturating_add(SPARE), &mut self.answered).await;
        self.is_over = answer.is_some();
        match answer {
            Some(Ok(answer)) => answer,
            Some(Err(_)) if self.is_take => Err(self.desk.closed().await),
            None if self.is_take => Err(self.desk.site.not_sent(None)),
            _ => Err(self.desk.site.unknown()),
        }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.answered.close();
        let signal = match self.answered.try_recv() {
            Ok(Ok(Answer::Taken(jobs))) => Signal::GiveBack(leases(jobs)),
            _ => Signal::Forget(self.token),
        };
        let _ = self.desk.signals.send(signal);
    }
}

/// The leases of jobs that were handed out.
pub(crate) fn leases(jobs: Vec<Job>) -> Vec<Lease> {
    jobs.into_iter().map(|job| job.lease).collect()
}

impl Bell {
    pub(crate) fn ring(&self, wakeup: Wakeup) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.wakeups.try_send(wakeup) {
            self.missed.store(true, Ordering::Release);
        }
    }

    /// Waits for room: for what must not be missed.
    pub(crate) async fn tell(&self, wakeup: Wakeup) {
        let _ = self.wakeups.send(wakeup).await;
    }
}
