//! A world in one thread: virtual time, a store in memory, a network that fails as a test says.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use delayline_core::{
    Command, Entry, Identity, Job, JobId, Millis, QueueName, Record, Reply, Session, Shards, Transmit,
    UnixMicros, Verdict,
};
use delayline_embedded::Store;
use delayline_wasm::World;
use delayline_wasm::rest::Landed;

/// Where virtual time begins, by Redis's clock.
const EPOCH_US: u64 = 1_763_700_000_000_000;

/// What the network does to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is carried out, and answered.
    Lands,
    /// It is lost on its way.
    Lost,
    /// It is carried out, and its answer is lost.
    Unanswered,
    /// It is neither carried out nor answered, until whoever asks gives up.
    Hangs,
}

type Handler = Box<dyn Fn(&Job) -> Verdict>;

pub(crate) struct Fake {
    pub(crate) store: RefCell<Store>,
    pub(crate) now_ms: Cell<u64>,
    /// How long a request, and its answer, are under way.
    pub(crate) way_ms: Cell<u64>,
    /// How long a delivery takes.
    pub(crate) delivery_ms: Cell<u64>,
    pub(crate) verdict: RefCell<Handler>,
    pub(crate) fate: RefCell<Box<dyn FnMut(u32) -> Fate>>,
    /// Requests, deliveries, and the most of both at once.
    pub(crate) sent: Cell<u32>,
    pub(crate) delivered: RefCell<Vec<(JobId, u64)>>,
    pub(crate) open: Cell<usize>,
    pub(crate) most: Cell<usize>,
    timers: RefCell<BTreeMap<(u64, u64), Waker>>,
    numbers: Cell<u64>,
    sequence: Cell<u64>,
}

impl Fake {
    pub(crate) fn new() -> Fake {
        Fake {
            store: RefCell::new(Store::new(Shards::default())),
            now_ms: Cell::new(1_000),
            way_ms: Cell::new(5),
            delivery_ms: Cell::new(20),
            verdict: RefCell::new(Box::new(|_| Verdict::Ack)),
            fate: RefCell::new(Box::new(|_| Fate::Lands)),
            sent: Cell::new(0),
            delivered: RefCell::default(),
            open: Cell::new(0),
            most: Cell::new(0),
            timers: RefCell::default(),
            numbers: Cell::new(0),
            sequence: Cell::new(0),
        }
    }

    pub(crate) fn redis_now(&self) -> UnixMicros {
        UnixMicros(EPOCH_US + self.now_ms.get() * 1_000)
    }

    pub(crate) fn execute(&self, command: &Command) -> Reply {
        self.store.borrow_mut().execute(self.redis_now(), command)
    }

    /// Publishes jobs that are due so long from now.
    pub(crate) fn publish(&self, queue: &str, jobs: impl IntoIterator<Item = (String, u64)>) {
        let record = Record::default().encode(delayline_core::Compression::Off).unwrap().to_bytes();
        let entry = |(id, ms): (String, u64)| Entry {
            id: id.parse().unwrap(),
            due: delayline_core::Due::After { ms },
            ttl_ms: 0,
            replace: false,
            edit: None,
            record: record.clone(),
        };
        self.sequence.set(self.sequence.get() + 1);
        let session = Session { engine: Identity(99), lane: 0, sequence: self.sequence.get() };
        let ceiling = delayline_core::Ceiling { jobs: 0, bytes: 0 };
        let jobs = jobs.into_iter().map(entry).collect();
        let queue = queue.parse().unwrap();
        let reply = self.execute(&Command::Publish { queue, session, ceiling, jobs });
        assert!(matches!(reply, Reply::Published { .. }), "{reply:?}");
    }

    pub(crate) fn stats(&self, queue: &str) -> delayline_core::Stats {
        let queue: QueueName = queue.parse().unwrap();
        match self.execute(&Command::Stats { queue, hours: 0 }) {
            Reply::Counted { stats, .. } => stats,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.now_ms.set(self.now_ms.get() + ms);
    }

    /// Carries the future out in virtual time; it is dropped at its await number `dies_at`. `None` if that came first.
    pub(crate) fn play<T>(&self, future: impl Future<Output = T>, dies_at: Option<u64>) -> Option<T> {
        let mut future = pin!(future);
        let mut awaits = 0;
        loop {
            if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return Some(done);
            }
            awaits += 1;
            if dies_at == Some(awaits) {
                return None;
            }
            let (at, waker) = {
                let mut timers = self.timers.borrow_mut();
                let ((at, _), waker) = timers.pop_first().expect("something is waited for");
                (at, waker)
            };
            self.now_ms.set(self.now_ms.get().max(at));
            waker.wake();
        }
    }

    fn until(&self, at: u64) -> impl Future<Output = ()> {
        self.numbers.set(self.numbers.get() + 1);
        let key = (at, self.numbers.get());
        poll_fn(move |context| {
            if self.now_ms.get() >= at {
                return Poll::Ready(());
            }
            self.timers.borrow_mut().insert(key, context.waker().clone());
            Poll::Pending
        })
    }

    fn opens(&self) -> Open<'_> {
        self.open.set(self.open.get() + 1);
        self.most.set(self.most.get().max(self.open.get()));
        Open(self)
    }
}

/// A request that is under way.
struct Open<'a>(&'a Fake);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
    }
}

impl World for Fake {
    fn now(&self) -> Millis {
        Millis(self.now_ms.get())
    }

    fn send<'a>(&'a self, transmit: Transmit<'_>) -> impl Future<Output = Landed> + use<'a> {
        let commands = transmit.commands.to_vec();
        let number = self.sent.get();
        self.sent.set(number + 1);
        let fate = (self.fate.borrow_mut())(number);
        async move {
            let _open = self.opens();
            let lost = |why: &str| Landed::Lost { why: why.to_owned() };
            self.until(self.now_ms.get() + self.way_ms.get()).await;
            match fate {
                Fate::Lost => return lost("lost"),
                Fate::Hangs => {
                    self.until(self.now_ms.get() + 5_000).await;
                    return lost("hung");
                }
                Fate::Lands | Fate::Unanswered => {}
            }
            let replies = commands.iter().map(|command| self.execute(command)).collect();
            self.until(self.now_ms.get() + self.way_ms.get()).await;
            if fate == Fate::Unanswered { lost("unanswered") } else { Landed::Replies(replies) }
        }
    }

    async fn deliver(&self, job: Job) -> Verdict {
        let _open = self.opens();
        self.delivered.borrow_mut().push((job.lease.id.clone(), self.now_ms.get()));
        assert!(job.due <= self.redis_now().floor_ms(), "{} is early", job.lease.id);
        self.until(self.now_ms.get() + self.delivery_ms.get()).await;
        (self.verdict.borrow())(&job)
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> {
        self.until(self.now_ms.get() + ms)
    }
}
