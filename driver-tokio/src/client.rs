use std::fmt;
use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use delayline_core::wire::LAYOUT;
use delayline_core::{
    Answer, Ask, Ceiling, ExtendOutcome, Fault, Lease, Pacing, Prefix, QueueName, SettleOutcome, Shard,
    Shards, UnixMs, Verdict,
};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::builder::ClientBuilder;
use crate::clock;
use crate::codec::{Codec, Coder, Json, Raw};
use crate::entropy::Ids;
use crate::inbox::{Desk, Reply, Signal, Stop, unexpected};
use crate::invalid::{self, millis};
use crate::store::Store;
use crate::{Cursor, Error, Invalid, Page, Queue, Taking};

const PING: Duration = Duration::from_secs(2);
const NAMES_MAX: usize = 10_000;

/// A deployment of queues, wherever it is. Clones share everything.
///
/// What was accepted is sent until it is answered, or its time is over. When the last clone, with every [`Queue`] made
/// of it, is dropped, what is in hand is still sent, in the background and within the grace; [`close`](Client::close)
/// waits for that.
///
/// ```
/// # #[cfg(feature = "memory")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use std::time::Duration;
/// use delayline_tokio::{Client, SettleOutcome, Verdict};
///
/// let client = Client::connect("memory://").await?;
/// let (urgent, other) = (client.queue::<u64>("urgent")?, client.queue::<u64>("other")?);
/// other.publish(&17).await?;
///
/// let taken = client.take([&urgent, &other]).count(10).wait(Duration::from_secs(5)).await?;
/// assert_eq!(other.decode(&taken[0])?, 17);
/// let outcome = client.settle(taken[0].lease.clone(), Verdict::Ack).await?;
/// assert_eq!(outcome, SettleOutcome::Done);
/// client.close().await;
/// # Ok::<(), delayline_tokio::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) office: Arc<Office>,
}

/// What became of a lease that was to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// What.
    pub outcome: ExtendOutcome,
    /// When it ends now, by Redis's clock, if it was renewed.
    pub ends: UnixMs,
}

/// What all clones of a client share.
pub(crate) struct Office {
    pub(crate) desk: Desk,
    pub(crate) ids: Ids,
    pub(crate) limits: Limits,
    pub(crate) store: Store,
    pub(crate) prefix: Prefix,
    pub(crate) shards: Shards,
    pub(crate) version: Option<(u16, u16, u16)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_payload: usize,
    pub(crate) fail_fast: bool,
    pub(crate) timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) ceiling: Ceiling,
    pub(crate) pacing: Pacing,
    pub(crate) gap: Duration,
}

impl Client {
    /// Connects to `redis://[user:password@]host[:port][/database]`, `rediss://` (feature `tls`),
    /// `redis+unix:///path/to/socket[?db=..]`, or `memory://` (feature `memory`): a new store in this process, and
    /// `memory://name` the one of that name. Options: `?prefix=..&shards=..`.
    ///
    /// Waits for a Redis that is not there yet, for 10 s unless [`connect_timeout`](ClientBuilder::connect_timeout) says
    /// otherwise, and is [`Error::Unreachable`] then. From then on, a Redis that goes away and comes back needs no action,
    /// nor does an address that leads to another server, the new primary: log lines (`tracing`) tell each outage once, and
    /// its end.
    pub async fn connect(url: &str) -> Result<Client, Error> {
        Client::builder().connect(url).await
    }

    /// A client with options.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client over connections that `redis` makes: its certificates, its user, its database.
    pub async fn from_redis(redis: redis::Client) -> Result<Client, Error> {
        Client::builder().from_redis(redis).await
    }

    /// [`connect`](Client::connect) for a thread without a runtime. Panics within one: await the other there.
    pub fn connect_blocking(url: &str) -> Result<Client, Error> {
        block_on(Client::connect(url))?
    }

    /// Waits for anything this client, its queues and workers answer, on a thread without a runtime, such as that of a
    /// [`blocking`](crate::blocking) handler. Panics within one: await it there.
    ///
    /// ```
    /// # #[cfg(feature = "memory")] {
    /// let client = delayline_tokio::Client::connect_blocking("memory://")?;
    /// let emails = client.queue::<String>("emails")?;
    /// let published = emails.publish(&"ann".to_owned()).blocking()?;
    /// client.block_on(emails.cancel(&published.id))??;
    /// # }
    /// # Ok::<(), delayline_tokio::Error>(())
    /// ```
    pub fn block_on<F: IntoFuture>(&self, future: F) -> Result<F::Output, Error> {
        block_on(future.into_future())
    }

    /// A queue of this deployment, whose jobs are written as JSON. Fails only if the name is not valid.
    pub fn queue<T: Serialize + DeserializeOwned + 'static>(
        &self,
        name: impl AsRef<str>,
    ) -> Result<Queue<T>, Error> {
        self.queue_with(name, Json)
    }

    /// A queue of this deployment, whose jobs are written by this codec.
    pub fn queue_with<T: 'static>(
        &self,
        name: impl AsRef<str>,
        codec: impl Codec<T>,
    ) -> Result<Queue<T>, Error> {
        Ok(Queue::new(self.office.clone(), name.as_ref().parse()?, Coder::new(codec)))
    }

    /// A queue of this deployment, whose jobs are bytes.
    pub fn bytes(&self, name: impl AsRef<str>) -> Result<Queue<Bytes>, Error> {
        self.queue_with(name, Raw)
    }

    /// Reads the names of all queues page by page, about `count` of 1 to 10,000 at a time, in no order. A queue that was
    /// there all along is answered at least once.
    pub async fn queues(&self, cursor: Option<&Cursor>, count: u16) -> Result<Page<QueueName>, Error> {
        Invalid::count("number of queues to list", count.into(), NAMES_MAX)?;
        let (mut shard, mut cursor) = cursor.map_or(Ok((Shard(0), 0)), Cursor::queues)?;
        let mut items = Vec::new();
        loop {
            if shard.0 >= self.office.shards.count() {
                return Ok(Page { items, next: None });
            }
            match self.office.request(Ask::Queues { shard, cursor, count }).await? {
                Answer::Named { queues, cursor: next } => {
                    items.extend(queues);
                    (shard, cursor) = if next == 0 { (Shard(shard.0 + 1), 0) } else { (shard, next) };
                }
                other => return Err(unexpected(&other)),
            }
            if items.len() >= count.into() && shard.0 < self.office.shards.count() {
                return Ok(Page { items, next: Some(Cursor::of_queues(shard, cursor)) });
            }
        }
    }

    /// Jobs to be taken from these queues: the first that has due jobs answers. Await it.
    pub fn take<Q: Into<QueueName>>(&self, queues: impl IntoIterator<Item = Q>) -> Taking {
        Taking::new(self.office.clone(), queues.into_iter().map(Into::into).collect())
    }

    /// Ends a delivery by its lease, from whichever process. Repeating it is harmless.
    pub async fn settle(&self, lease: Lease, verdict: Verdict) -> Result<SettleOutcome, Error> {
        self.settle_all(vec![(lease, verdict)]).await.pop().unwrap_or_else(|| Err(self.office.unknown()))
    }

    /// Ends deliveries together, and answers what became of each, in their order. Each succeeds or fails for itself.
    pub async fn settle_all(&self, leases: Vec<(Lease, Verdict)>) -> Vec<Result<SettleOutcome, Error>> {
        let checked: Vec<Option<Invalid>> =
            leases.iter().map(|(_, verdict)| invalid::verdict(verdict).err()).collect();
        let asks = leases.into_iter().zip(&checked).filter(|(_, wrong)| wrong.is_none());
        let asks = asks.map(|((lease, verdict), _)| Ask::Settle { lease, verdict }).collect();
        let mut replies = self.office.desk.requests(asks, self.office.limits.timeout).await.into_iter();
        let outcomes = checked.into_iter().map(|wrong| match wrong {
            Some(wrong) => Err(wrong.into()),
            None => match replies.next() {
                Some(Ok(Answer::Settled(outcome))) => Ok(outcome),
                Some(Ok(other)) => Err(unexpected(&other)),
                Some(Err(error)) => Err(error),
                None => Err(self.office.unknown()),
            },
        });
        outcomes.collect()
    }

    /// Gives jobs back that were taken, as if they had not been: no attempt is spent. It waits for nothing, so it can be
    /// called where something is dropped; if Redis does not hear of it, their leases end by themselves.
    pub fn give_back(&self, leases: Vec<Lease>) {
        if !leases.is_empty() {
            let _ = self.office.desk.signals.send(Signal::GiveBack(leases));
        }
    }

    /// Renews a lease, to last so long from now: 1 s to 24 h.
    pub async fn extend(&self, lease: Lease, by: Duration) -> Result<Extended, Error> {
        match self.office.request(Ask::Extend { lease, lease_ms: millis(by) }).await? {
            Answer::Extended(outcome, ends) => Ok(Extended { outcome, ends }),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes one round trip of the kind that all else needs, within 2 s: for readiness.
    pub async fn ping(&self) -> Result<(), Error> {
        let wanted = self.office.shards;
        match self.office.desk.request(Ask::Open { shards: wanted }, PING).await? {
            Answer::Opened { layout: LAYOUT, shards } if shards == wanted => Ok(()),
            Answer::Opened { layout, shards: found } => {
                Err(self.office.desk.site.error(Fault::OtherDeployment { layout, found, wanted }))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Whether its store is in this process.
    pub fn is_memory(&self) -> bool {
        self.office.store.is_memory()
    }

    /// Where its store is: without user and password.
    pub fn address(&self) -> &str {
        &self.office.desk.site.address
    }

    /// What its keys begin with.
    pub fn prefix(&self) -> &Prefix {
        &self.office.prefix
    }

    /// How many shards the deployment has.
    pub fn shards(&self) -> Shards {
        self.office.shards
    }

    /// The version of Redis; `None` if it could not be read.
    pub fn redis_version(&self) -> Option<(u16, u16, u16)> {
        self.office.version
    }

    /// Why this client's engine does nothing any more, if that is so: for a liveness probe. [`Error::EnginePanicked`] if
    /// it panicked, [`Error::Closed`] if it was told to stop, or what it stopped for by itself.
    pub fn failure(&self) -> Option<Error> {
        self.office.desk.failure()
    }

    /// Ends when this client's engine panics or stops by itself, and never otherwise: for a process that would rather end
    /// than go on without.
    pub async fn failed(&self) -> Error {
        match self.office.desk.ended().await {
            Ok(()) => std::future::pending().await,
            Err(panicked) => panicked,
        }
    }

    /// Makes the engines of this client and of its workers panic, as a bug would.
    #[doc(hidden)]
    pub fn panic_engines(&self) {
        let _ = self.office.desk.signals.send(Signal::Panic);
        self.office.desk.site.doom();
    }

    /// Ends this client and all its clones: nothing new is accepted, takes are answered with nothing, what was published
    /// is sent. Returns when all is done, or the grace is over.
    pub async fn close(self) {
        let _ = self.office.desk.stop.send(Stop::Drain);
        let _ = self.office.desk.ended().await;
    }
}

/// Runs it here; the engine it asks has a thread of its own.
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Error::System { what: "a runtime", why: error.to_string() })?;
    Ok(runtime.block_on(future))
}

impl Office {
    /// The wall clock, unless a test holds the time.
    pub(crate) fn wall(&self) -> SystemTime {
        clock::wall(self.store.held().as_deref())
    }

    pub(crate) fn unknown(&self) -> Error {
        self.desk.site.unknown()
    }

    pub(crate) async fn request(&self, ask: Ask) -> Reply {
        self.desk.request(ask, self.limits.timeout).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.office.desk.site.address).finish_non_exhaustive()
    }
}
