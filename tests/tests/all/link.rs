//! The tokio driver's connections, when the network or the server fails it in every way that a shim knows.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use delayline_tests::shim::{Fault, On, Plan, Shim};
use delayline_tests::{RedisServer, block_on};
use delayline_tokio::{Bytes, Client, Context, Error, Queue, Refusal, SettleOutcome, Verdict, Worker};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const QUEUES: [&str; 3] = ["mail", "orders", "x"];
const JOBS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a caller of a server that never does what is asked waits.
const BRIEF: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(6);
const LEASE: Duration = Duration::from_secs(60);
const SHORT_LEASE: Duration = Duration::from_secs(1);

const ERRORS: [(&str, Refusal); 10] = [
    ("NOSCRIPT No matching script. Please use EVAL.", Refusal::NoScript),
    ("LOADING Redis is loading the dataset in memory", Refusal::Loading),
    ("READONLY You can't write against a read only replica.", Refusal::ReadOnly),
    ("OOM command not allowed when used memory > 'maxmemory'.", Refusal::OutOfMemory),
    ("BUSY Redis is busy running a script.", Refusal::Unavailable),
    ("MASTERDOWN Link with MASTER is down", Refusal::ReadOnly),
    ("CLUSTERDOWN The cluster is down", Refusal::Unavailable),
    ("MOVED 3999 127.0.0.1:6381", Refusal::Moved),
    ("TRYAGAIN Multiple keys request during rehashing of slot", Refusal::Unavailable),
    ("NOAUTH Authentication required.", Refusal::Denied),
];

/// Replies that no script gives, well formed all the same.
const STRANGE: [&[u8]; 6] = [
    b":5\r\n",
    b"$-1\r\n",
    b"*0\r\n",
    b"+OK\r\n",
    b"*2\r\n$2\r\nok\r\n$1\r\nx\r\n",
    b"-ERR what script?\r\n",
];

/// What is no reply at all.
const GARBAGE: [&[u8]; 7] = [
    b"garbage\r\n",
    b"\0\xff\r\n\r\n",
    b":many\r\n",
    b"$99999999999\r\nx",
    b"*99999999\r\n",
    b"*9223372036854775807\r\n",
    b"$9223372036854775807\r\n",
];

/// A client and its worker, both behind a shim, on a prefix of their own.
struct Link {
    name: String,
    begun: Instant,
    shim: Shim,
    client: Client,
    direct: Client,
    queues: Vec<Queue<Bytes>>,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
    /// How often each was published again, since it was not known whether it had been accepted.
    again: Arc<Mutex<BTreeMap<String, u32>>>,
    worker: JoinHandle<Result<(), Error>>,
}

impl Link {
    async fn new(server: &RedisServer, name: &str, lease: Duration) -> Link {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (name, shim, begun) = (name.to_owned(), Shim::start(server.port(), 1), Instant::now());
        let prefix = format!("link{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let connect = async |url: String| {
            let connected = Client::builder().prefix(&prefix).connect(&url).await;
            connected.unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let (client, direct) = (connect(shim.url()).await, connect(server.url()).await);
        let queues: Vec<_> = QUEUES.iter().map(|name| client.bytes(name).expect("a name")).collect();
        let runs = Arc::new(Mutex::new(BTreeMap::new()));
        let mut worker = Worker::new(&client).lease(lease).concurrency(10);
        for queue in &queues {
            let runs = runs.clone();
            worker = worker.queue(queue, move |job: Context| {
                *lock(&runs).entry(job.lease.id.to_string()).or_insert(0) += 1;
                async {}
            });
        }
        let worker = tokio::spawn(worker.run());
        let again = Arc::default();
        Link { name, begun, shim, client, direct, queues, runs, again, worker }
    }

    /// Publishes jobs, all at once, each until its acceptance is known.
    async fn publish(&self, jobs: Range<usize>) {
        let publishing = jobs.map(|number| {
            let (queue, again) = (self.queues[number % self.queues.len()].clone(), self.again.clone());
            tokio::spawn(async move { accepted(&queue, &format!("job-{number}"), &again).await })
        });
        for job in publishing.collect::<Vec<_>>() {
            let done = timeout(PATIENCE, job).await;
            done.unwrap_or_else(|_| panic!("{}: not published", self.name)).expect("no panic");
        }
    }

    async fn all_ran(&self, count: usize) {
        self.until("runs of all jobs", || lock(&self.runs).len() >= count).await;
    }

    /// What is asked is soon so.
    async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            let (seen, tally) = (lock(&self.runs).len(), self.shim.tally());
            assert!(begun.elapsed() < PATIENCE, "{}: no {what}: {seen} have run; {tally:?}", self.name);
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// The connection is back, nothing was lost, and each job and one more ran, no more often than this.
    async fn settles(self, most_runs: u32) {
        self.shim.heal();
        accepted(&self.queues[0], "last", &self.again).await;
        self.all_ran(JOBS + 1).await;
        let begun = Instant::now();
        while !self.is_done().await {
            assert!(begun.elapsed() < PATIENCE, "{}: left and published {:?}", self.name, self.left().await);
        }
        let (runs, again) = (lock(&self.runs).clone(), lock(&self.again).clone());
        let most = |id: &str| most_runs.saturating_add(again.get(id).copied().unwrap_or(0));
        let often: Vec<_> = runs.iter().filter(|(id, count)| **count > most(id)).collect();
        assert!(often.is_empty(), "{}: ran too often: {often:?}", self.name);
        assert_eq!(runs.len(), JOBS + 1, "{}", self.name);
        println!("{}: {JOBS} jobs in {:?}; {:?}", self.name, self.begun.elapsed(), self.shim.tally());
        self.client.close().await;
        self.worker.await.expect("no panic").expect("a worker that ran");
    }

    /// Whether all jobs are published and gone. An id that is published again after its job has run is another job.
    async fn is_done(&self) -> bool {
        let (left, published) = self.left().await;
        let (expected, again) = (JOBS as u64 + 1, lock(&self.again).values().copied().sum::<u32>());
        left == 0 && (expected..=expected + u64::from(again)).contains(&published)
    }

    /// How many jobs there are, and how many there ever were.
    async fn left(&self) -> (u64, u64) {
        let (mut left, mut published) = (0, 0);
        for name in QUEUES {
            let queue = self.direct.bytes(name).expect("a name");
            let stats = queue.stats(0).await.expect("statistics");
            published += stats.counters.published;
            left += stats.counters.published - stats.counters.acked;
        }
        (left, published)
    }
}

/// Publishes it again and again under its id, as callers should, until the answer is known.
async fn accepted(queue: &Queue<Bytes>, id: &str, again: &Mutex<BTreeMap<String, u32>>) {
    loop {
        match queue.publish_bytes("body").id(id).await {
            Ok(_) => return,
            Err(Error::NotSent { .. }) => {}
            Err(Error::Unknown { .. } | Error::Broken(_)) => {
                *lock(again).entry(id.to_owned()).or_insert(0) += 1;
            }
            Err(other) => panic!("{id}: {other}"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lease that may end while a job runs lets it run again.
fn most_runs(lease: Duration) -> u32 {
    if lease == LEASE { 1 } else { u32::MAX }
}

fn shown(fault: &Fault) -> String {
    match fault {
        Fault::Answer(bytes) => format!("Answer {}", bytes.escape_ascii()),
        _ => format!("{fault:?}"),
    }
}

/// Runs all cases at once.
fn together<C: Future<Output = ()> + Send + 'static>(cases: impl IntoIterator<Item = C>) {
    block_on(async {
        let cases: Vec<_> = cases.into_iter().map(tokio::spawn).collect();
        for case in cases {
            case.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        }
    });
}

/// Jobs are published, taken and acknowledged under each plan; each runs, and only once unless leases may end.
fn all_run_under(plans: impl IntoIterator<Item = Plan>, lease: Duration) {
    let server = Arc::new(RedisServer::plain());
    together(plans.into_iter().map(|plan| {
        let server = server.clone();
        async move {
            let name = plan.faults.iter().map(|(on, fault)| format!("{on:?} {}", shown(fault)));
            let link = Link::new(&server, &name.collect::<String>(), lease).await;
            link.shim.set(plan);
            link.publish(0..JOBS).await;
            link.all_ran(JOBS).await;
            assert!(link.shim.tally().struck > 0, "{}: nothing was struck", link.name);
            link.settles(most_runs(lease)).await;
        }
    }));
}

/// A publish meets each answer, again and again, and ends in an error, which is of this class. What the error says is true:
/// the job is there after it, or it is not.
fn publish_ends_in(answers: impl IntoIterator<Item = (Fault, Class)>) {
    let server = Arc::new(RedisServer::plain());
    together(answers.into_iter().map(|(fault, class)| {
        let server = server.clone();
        async move {
            let lease = if class == Class::Broken { SHORT_LEASE } else { LEASE };
            let link = Link::new(&server, &shown(&fault), lease).await;
            link.publish(0..1).await;
            link.all_ran(1).await;
            link.shim.set(Plan::one(On::Every(1), fault));
            let queue = &link.queues[0];
            let error = queue.publish_bytes("body").id("job-1").timeout(BRIEF).await.expect_err("no answer");
            assert!(class.is_of(&error), "{}: {error:?}", link.name);
            let is_there = link.left().await.1 == 2;
            assert!(class.may_be(is_there), "{}: {error}, and the job is there: {is_there}", link.name);
            link.shim.heal();
            link.shim.cut_all();
            let is_to_come = !matches!(class, Class::NotSent(_));
            link.publish(1 + usize::from(is_to_come)..JOBS).await;
            link.settles(most_runs(lease)).await;
        }
    }));
}

/// What an error says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Certainly not executed.
    NotSent(Refusal),
    /// It may have been.
    Unknown,
    /// It was, though the answer makes no sense.
    Broken,
}

impl Class {
    fn is_of(self, error: &Error) -> bool {
        match error {
            Error::NotSent { why, .. } => Some(self) == why.map(Class::NotSent),
            Error::Unknown { .. } => self == Class::Unknown,
            Error::Broken(_) => self == Class::Broken,
            _ => false,
        }
    }

    fn may_be(self, is_there: bool) -> bool {
        match self {
            Class::NotSent(_) => !is_there,
            Class::Unknown => true,
            Class::Broken => is_there,
        }
    }
}

#[test]
fn a_connection_that_ends_or_goes_silent_costs_no_job() {
    let ends = [Fault::CutBefore, Fault::CutAfter, Fault::CutWithin].into_iter().flat_map(|fault| {
        [1, 2, 3]
            .map(|place| Plan::one(On::Place(place), fault).times(5))
            .into_iter()
            .chain([Plan::one(On::Every(5), fault)])
    });
    let silences = [Fault::LoseRequest, Fault::LoseReply, Fault::Half, Fault::Delay(LATE)];
    let silences = silences.map(|fault| Plan::one(On::Nth(3), fault));
    let slow = Plan::one(On::Percent(30), Fault::Delay(Duration::from_millis(30)));
    all_run_under(ends.chain(silences).chain([slow]), LEASE);
}

#[test]
fn what_the_server_refuses_is_sent_again() {
    all_run_under(ERRORS.map(|(error, _)| Plan::one(On::Percent(40), Fault::Refuse(error))), LEASE);
}

#[test]
fn garbage_ends_in_a_new_connection() {
    all_run_under(GARBAGE.map(|bytes| Plan::one(On::Nth(3), Fault::Answer(bytes))), SHORT_LEASE);
}

#[test]
fn a_reply_that_makes_no_sense_costs_no_job() {
    all_run_under(STRANGE.map(|reply| Plan::one(On::Every(4), Fault::Answer(reply)).times(8)), SHORT_LEASE);
}

#[test]
fn an_error_tells_whether_the_job_may_be_there() {
    let errors = ERRORS.map(|(error, why)| (Fault::Refuse(error), Class::NotSent(why)));
    let silences = [Fault::LoseRequest, Fault::LoseReply, Fault::Half, Fault::Delay(BRIEF + BRIEF)];
    let ends = [Fault::CutBefore, Fault::CutAfter, Fault::CutWithin, Fault::Answer(GARBAGE[0])];
    let unknown = silences.into_iter().chain(ends).map(|fault| (fault, Class::Unknown));
    let strange = STRANGE.map(|reply| (Fault::Answer(reply), Class::Broken));
    publish_ends_in(errors.into_iter().chain(unknown).chain(strange));
}

#[test]
fn connections_that_are_refused_are_made_when_they_can_be() {
    let server = RedisServer::plain();
    block_on(async {
        let link = Link::new(&server, "refused", LEASE).await;
        link.shim.set(Plan { refuse: true, ..Plan::default() });
        link.shim.cut_all();
        link.until("refusal", || link.shim.tally().refused > 0).await;
        let answer = link.queues[0].publish_bytes("body").id("job-0").timeout(BRIEF).await;
        match answer {
            Err(Error::NotSent { .. }) => {}
            // It may still be published, and run, before it is published again.
            Err(Error::Unknown { .. }) => *lock(&link.again).entry("job-0".to_owned()).or_insert(0) += 1,
            answer => panic!("{answer:?}"),
        }
        assert_eq!(link.left().await, (0, 0));
        link.shim.heal();
        link.publish(0..JOBS).await;
        link.settles(1).await;
    });
}

#[test]
fn messages_that_are_lost_cost_no_job() {
    let server = RedisServer::plain();
    block_on(async {
        let link = Link::new(&server, "swallowed", LEASE).await;
        link.shim.set(Plan { swallow_messages: true, ..Plan::default() });
        for number in 0..JOBS {
            link.publish(number..number + 1).await;
            let is_unheard = || link.shim.tally().swallowed > 0;
            link.until("run or message", || is_unheard() || lock(&link.runs).len() > number).await;
        }
        assert!(link.shim.tally().swallowed > 0);
        link.shim.heal();
        link.shim.cut_subscriptions();
        link.all_ran(JOBS).await;
        link.settles(1).await;
    });
}

#[test]
fn subscriptions_that_end_cost_no_job() {
    let server = RedisServer::plain();
    block_on(async {
        let link = Link::new(&server, "subscriptions", LEASE).await;
        for round in 1..=3 {
            link.shim.cut_subscriptions();
            link.publish((round - 1) * JOBS / 3..round * JOBS / 3).await;
            link.all_ran(round * JOBS / 3).await;
        }
        link.settles(1).await;
    });
}

#[test]
fn a_link_that_stands_still_goes_on_where_it_stood() {
    let server = RedisServer::plain();
    block_on(async {
        let link = Link::new(&server, "frozen", LEASE).await;
        for round in 1..=3 {
            link.shim.freeze(true);
            let mut publishing = pin!(link.publish((round - 1) * JOBS / 3..round * JOBS / 3));
            assert!(timeout(BRIEF, &mut publishing).await.is_err(), "published though all stands still");
            link.shim.freeze(false);
            publishing.await;
        }
        link.settles(1).await;
    });
}

#[test]
fn takes_and_settlements_outlive_their_connection() {
    let server = RedisServer::plain();
    let shim = Shim::start(server.port(), 1);
    block_on(async {
        let client = Client::connect(&shim.url()).await.expect("a client");
        let queue = client.bytes("mail").expect("a name");
        for number in 0..JOBS {
            accepted(&queue, &format!("job-{number}"), &Mutex::default()).await;
        }
        shim.set(Plan::one(On::Every(3), Fault::CutAfter));
        let mut runs = BTreeMap::new();
        let begun = Instant::now();
        while runs.len() < JOBS {
            assert!(begun.elapsed() < PATIENCE, "{} were taken", runs.len());
            let taken = queue.take().count(7).lease(LEASE).wait(BRIEF).await.expect("an answer");
            let leases: Vec<_> = taken.into_iter().map(|job| job.lease).collect();
            for lease in &leases {
                *runs.entry(lease.id.to_string()).or_insert(0) += 1;
            }
            for settled in
                client.settle_all(leases.into_iter().map(|lease| (lease, Verdict::Ack)).collect()).await
            {
                assert!(matches!(settled, Ok(SettleOutcome::Done | SettleOutcome::Gone)), "{settled:?}");
            }
        }
        shim.heal();
        assert!(runs.values().all(|count| *count == 1), "{runs:?}");
        assert_eq!(queue.stats(0).await.expect("statistics").counters.acked, JOBS as u64);
        assert!(shim.tally().struck > 0);
        client.close().await;
    });
}
