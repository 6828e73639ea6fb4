use std::sync::Arc;
use std::time::{Duration, Instant};

use delayline_core::wire::LAYOUT;
use delayline_core::{Answer, Ask, Ceiling, Config, Pacing, Prefix, Pumping, Refusal, Shards};

use crate::address::{self, Address, AddressError, Target};
use crate::client::{Client, Limits, Office};
use crate::entropy::{self, Ids};
use crate::inbox::{Desk, unexpected};
use crate::link::ATTEMPT;
use crate::owner::{self, Plan};
use crate::site::{Site, Trouble};
use crate::store::Store;
use crate::{Error, FlightRecorder, Invalid};

const OLDEST: (u16, u16, u16) = (6, 2, 0);
const PROBE: Duration = Duration::from_secs(2);
/// How long an answer is waited for at a time.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much longer than the caller waits: so that the engine's own answer, which says why, comes first.
const SPARE: Duration = Duration::from_millis(250);
const OVERHEAD: usize = 64 << 10;

/// The options of a [`Client`].
///
/// ```
/// # #[cfg(feature = "memory")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use std::time::Duration;
/// use delayline_tokio::Client;
///
/// let client = Client::builder()
///     .prefix("shop")
///     .connect_timeout(Duration::MAX) // wait for a Redis that is not there yet for as long as it takes
///     .timeout(Duration::from_secs(5))
///     .connect("memory://")
///     .await?;
/// assert_eq!(client.prefix().as_str(), "shop");
/// # Ok::<(), delayline_tokio::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    prefix: Option<String>,
    shards: Option<u16>,
    strict: bool,
    pump: Pumping,
    connect_timeout: Duration,
    backlog: (usize, usize),
    requests: usize,
    #[cfg(feature = "memory")]
    max_memory: usize,
    limits: Limits,
    recorder: Option<FlightRecorder>,
}

impl Default for ClientBuilder {
    fn default() -> ClientBuilder {
        let config = Config::default();
        ClientBuilder {
            prefix: None,
            shards: None,
            strict: false,
            pump: Pumping::WhileTaking,
            connect_timeout: Duration::from_secs(10),
            backlog: (config.pending_jobs, config.pending_bytes),
            requests: config.pending_requests,
            #[cfg(feature = "memory")]
            max_memory: usize::MAX,
            limits: Limits {
                max_payload: 1 << 20,
                fail_fast: false,
                timeout: Duration::from_secs(30),
                grace: Duration::from_secs(20),
                ceiling: config.ceiling,
                pacing: config.pacing,
                gap: Duration::from_millis(config.gap_ms),
            },
            recorder: None,
        }
    }
}

impl ClientBuilder {
    /// What all keys begin with, in braces; `dl` unless this or the URL says otherwise.
    pub fn prefix(mut self, prefix: impl Into<String>) -> ClientBuilder {
        self.prefix = Some(prefix.into());
        self
    }

    /// How many shards the deployment is to have, 1 to 256. The first client fixes it; who asks for another number is
    /// refused, who asks for none takes what is found, or one.
    pub fn shards(mut self, count: u16) -> ClientBuilder {
        self.shards = Some(count);
        self
    }

    /// Refuse a Redis that evicts keys when its memory is full, instead of warning.
    pub fn strict(mut self, strict: bool) -> ClientBuilder {
        self.strict = strict;
        self
    }

    /// Stand for the pump lease all the time, as a service does, instead of only while a take waits: so that jobs expire,
    /// are forwarded and are purged though nobody takes.
    pub fn pump(mut self, always: bool) -> ClientBuilder {
        self.pump = if always { Pumping::Always } else { Pumping::WhileTaking };
        self
    }

    /// The largest body that is published, in bytes; 1 MiB if not called.
    pub fn max_payload(mut self, bytes: usize) -> ClientBuilder {
        self.limits.max_payload = bytes;
        self
    }

    /// Answer [`Error::Busy`] at once when the backlog is full, instead of waiting.
    pub fn fail_fast(mut self, fail_fast: bool) -> ClientBuilder {
        self.limits.fail_fast = fail_fast;
        self
    }

    /// The most jobs accepted and not yet answered, and the most bytes of them; 4,096 and 64 MiB if not called.
    pub fn backlog(mut self, jobs: usize, bytes: usize) -> ClientBuilder {
        self.backlog = (jobs, bytes);
        self
    }

    /// The most takes that wait, and the most other requests not answered yet, 1 to 1,048,576; 4,096 of each if not called.
    /// Beyond that they are [`Error::Busy`].
    pub fn requests(mut self, most: usize) -> ClientBuilder {
        self.requests = most;
        self
    }

    /// About how many bytes a store in memory holds; no limit if not called. Beyond it publishes are refused, as those to a
    /// full Redis are.
    #[cfg(feature = "memory")]
    pub fn max_memory(mut self, bytes: usize) -> ClientBuilder {
        self.max_memory = bytes;
        self
    }

    /// What a queue may hold if its config does not say; 2,000,000 jobs of any size if not called.
    pub fn ceiling(mut self, ceiling: Ceiling) -> ClientBuilder {
        self.limits.ceiling = ceiling;
        self
    }

    /// What waits for company on its way to Redis, here and in this client's workers, so that it costs fewer round trips;
    /// [`Pacing::Punctual`] if not called: then nothing waits but the acknowledgements of workers.
    pub fn pacing(mut self, pacing: Pacing) -> ClientBuilder {
        self.limits.pacing = pacing;
        self
    }

    /// How long it waits for company at most, up to 20 ms; 10 ms if not called.
    pub fn gap(mut self, gap: Duration) -> ClientBuilder {
        self.limits.gap = gap;
        self
    }

    /// How long callers wait for an answer; 30 s if not called.
    pub fn timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.limits.timeout = timeout;
        self
    }

    /// How long a Redis that is not there, or is not ready, is waited for; 10 s if not called, [`Duration::MAX`] is as long
    /// as it takes. With zero, the first failure to connect is final. A Redis that does not let us in, or is a node of a
    /// Redis Cluster that lacks some of our keys, is not waited for.
    pub fn connect_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.connect_timeout = timeout;
        self
    }

    /// How long closing may take; 20 s if not called.
    pub fn grace(mut self, grace: Duration) -> ClientBuilder {
        self.limits.grace = grace;
        self
    }

    /// Records what this client's engine is told; nothing is recorded if not called.
    pub fn flight_recorder(mut self, recorder: FlightRecorder) -> ClientBuilder {
        self.recorder = Some(recorder);
        self
    }

    /// Connects to an address: see [`Client::connect`].
    pub async fn connect(mut self, url: &str) -> Result<Client, Error> {
        let Address { target, prefix, shards } = Address::parse(url)?;
        self.prefix = self.prefix.or(prefix);
        self.shards = self.shards.or(shards);
        let (store, address) = match target {
            Target::Redis(info) => {
                let address = address::shown(&info);
                let opened = redis::Client::open(*info);
                (Store::Redis(opened.map_err(|_| Error::Address(AddressError::Form))?), address)
            }
            #[cfg(feature = "memory")]
            Target::Memory(name) => {
                let address = format!("memory://{}", name.as_deref().unwrap_or_default());
                let shards = self.wanted()?.unwrap_or_default();
                let memory = crate::memory::Memory::open(name.as_deref(), shards, self.max_memory);
                (Store::Memory(memory), address)
            }
        };
        self.open(store, address).await
    }

    /// Connects over connections that `redis` makes, their sockets [`tuned`](crate::tuned).
    pub async fn from_redis(self, redis: redis::Client) -> Result<Client, Error> {
        let info = address::tuned(redis.get_connection_info().clone());
        let address = address::shown(&info);
        let redis = redis::Client::open(info).map_err(|_| Error::Address(AddressError::Form))?;
        self.open(Store::Redis(redis), address).await
    }

    fn wanted(&self) -> Result<Option<Shards>, Error> {
        let Some(count) = self.shards else { return Ok(None) };
        Invalid::count("number of shards", count.into(), Shards::MAX.into())?;
        Ok(Shards::new(count))
    }

    async fn open(self, store: Store, address: String) -> Result<Client, Error> {
        #[cfg(feature = "tls")]
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wanted = self.wanted()?;
        let prefix: Prefix = self.prefix.as_deref().map_or_else(|| Ok(Prefix::default()), str::parse)?;
        let mut shards = wanted.unwrap_or_default();
        let site = Arc::new(Site::new(address.clone(), !self.connect_timeout.is_zero()));
        let opening = Opening { builder: &self, store: &store, prefix: &prefix, site: &site };
        let mut desk = opening.start(shards)?;
        let found = opening.open(&desk, shards).await?;
        if found != shards {
            if wanted.is_some() {
                let (wanted, found) = (shards.count(), found.count());
                return Err(Error::ShardsMismatch { address, wanted, found });
            }
            shards = found;
            desk = opening.start(shards)?;
        }
        let (version, is_whole) = tokio::join!(opening.probe(&desk), opening.visit(&desk, shards));
        is_whole?;
        let version = version?;
        let ids = Ids::new(&store)?;
        let limits = self.limits;
        let office = Office { desk, ids, limits, store, prefix, shards, version };
        Ok(Client { office: Arc::new(office) })
    }

    /// A client of a test's store, which is there at once.
    #[cfg(feature = "memory")]
    pub(crate) fn at_once(self, store: Store, address: String) -> Result<Client, Error> {
        let (shards, prefix) = (Shards::default(), Prefix::default());
        let site = Arc::new(Site::new(address, true));
        let opening = Opening { builder: &self, store: &store, prefix: &prefix, site: &site };
        let desk = opening.start(shards)?;
        let ids = Ids::new(&store)?;
        let limits = self.limits;
        let office = Office { desk, ids, limits, store, prefix, shards, version: None };
        Ok(Client { office: Arc::new(office) })
    }
}

/// What connecting needs to know.
struct Opening<'a> {
    builder: &'a ClientBuilder,
    store: &'a Store,
    prefix: &'a Prefix,
    site: &'a Arc<Site>,
}

impl Opening<'_> {
    fn start(&self, shards: Shards) -> Result<Desk, Error> {
        let ClientBuilder { backlog: (jobs, bytes), requests, limits, pump, .. } = *self.builder;
        let config = Config {
            shards,
            pump,
            pending_jobs: jobs,
            pending_bytes: bytes.max(limits.max_payload.saturating_add(OVERHEAD)),
            pending_requests: requests,
            ceiling: limits.ceiling,
            pacing: limits.pacing,
            gap_ms: crate::invalid::millis(limits.gap),
            salt: entropy::salt(self.store)?,
            ..Config::default()
        };
        let plan = Plan {
            store: self.store.clone(),
            prefix: self.prefix.clone(),
            config,
            grace: limits.grace,
            runner: None,
            site: self.site.clone(),
            recorder: self.builder.recorder.clone(),
        };
        owner::start(plan)
    }

    /// Opens the deployment, once it can be reached, and answers how many shards it has.
    async fn open(&self, desk: &Desk, shards: Shards) -> Result<Shards, Error> {
        let limit = self.builder.connect_timeout;
        // The first failure is final then: silence is one when an attempt, and a question after it, had no answer.
        let longest = if limit.is_zero() { ATTEMPT + PATIENCE } else { limit };
        let mut refusal = None;
        let opening = self.ask(desk, shards, limit, &mut refusal);
        let opened = tokio::time::timeout(longest.saturating_add(SPARE), opening).await;
        opened.unwrap_or_else(|_| Err(self.unreachable(self.site.last_trouble(), refusal)))
    }

    async fn ask(
        &self,
        desk: &Desk,
        shards: Shards,
        limit: Duration,
        refusal: &mut Option<Refusal>,
    ) -> Result<Shards, Error> {
        let is_final = |trouble: &Trouble| trouble.is_denied || limit.is_zero();
        let begun = Instant::now();
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            let patience = if limit.is_zero() { PATIENCE } else { left.min(PATIENCE) };
            let answer = tokio::select! {
                answer = desk.request(Ask::Open { shards }, patience) => answer,
                trouble = self.site.fails(is_final) => return Err(self.unreachable(Some(trouble), None)),
                why = self.site.refuses(Refusal::is_lasting) => return Err(self.unreachable(None, Some(why))),
            };
            *refusal = match answer {
                Ok(Answer::Opened { layout, .. }) if layout > LAYOUT => {
                    return Err(Error::NewerLayout { address: self.address().to_owned(), found: layout });
                }
                Ok(Answer::Opened { layout, .. }) if layout < LAYOUT => {
                    return Err(Error::OlderLayout { address: self.address().to_owned() });
                }
                Ok(Answer::Opened { shards, .. }) => return Ok(shards),
                Ok(other) => return Err(unexpected(&other)),
                // A server that is too old cannot run the script either: its version says more.
                Err(error @ Error::Broken(_)) => return Err(self.probe(desk).await.err().unwrap_or(error)),
                Err(Error::NotSent { why, .. }) => why.filter(|why| *why != Refusal::NotConnected),
                Err(Error::Unknown { .. }) => None,
                Err(other) => return Err(other),
            };
            if begun.elapsed() >= limit {
                return Err(self.unreachable(self.site.last_trouble(), *refusal));
            }
        }
    }

    /// Looks at every shard: of a Redis Cluster, this node may hold some of them only.
    async fn visit(&self, desk: &Desk, shards: Shards) -> Result<(), Error> {
        let asks = shards.iter().map(|shard| Ask::Queues { shard, cursor: 0, count: 1 }).collect();
        tokio::select! { biased;
            why = self.site.refuses(|why| why == Refusal::Moved) => Err(self.unreachable(None, Some(why))),
            _ = desk.requests(asks, PROBE) => Ok(()),
        }
    }

    fn address(&self) -> &str {
        &self.site.address
    }

    fn unreachable(&self, trouble: Option<Trouble>, refusal: Option<Refusal>) -> Error {
        let address = self.address().to_owned();
        match (trouble, refusal) {
            (Some(Trouble { why, is_denied: true }), _) => Error::Denied { address, why },
            (_, Some(Refusal::Denied)) => {
                let why =
                    format!("it may not run scripts (EVALSHA, EVAL) on keys of the prefix {}", self.prefix);
                Error::Denied { address, why }
            }
            (_, Some(why)) => Error::Refused { address, why },
            (Some(Trouble { why, .. }), None) => Error::Unreachable { address, why },
            (None, None) => Error::Unreachable { address, why: "Redis does not answer".to_owned() },
        }
    }

    /// Reads version and policy, if the server lets us.
    async fn probe(&self, desk: &Desk) -> Result<Option<(u16, u16, u16)>, Error> {
        let address = self.address();
        let (version, policy) = match desk.request(Ask::Server, PROBE).await {
            Ok(Answer::Server { version, policy }) => (version, policy),
            other => {
                tracing::warn!(
                    address,
                    ?other,
                    "cannot read the server's version with INFO: going on without"
                );
                return Ok(None);
            }
        };
        if version < OLDEST {
            return Err(Error::ServerTooOld { address: address.to_owned(), version });
        }
        match policy {
            Some(policy) if policy.starts_with("allkeys") => {
                if self.builder.strict {
                    return Err(Error::Evicts { address: address.to_owned(), policy });
                }
                tracing::warn!(
                    address,
                    policy,
                    "Redis evicts keys when its memory is full, jobs among them: set maxmemory-policy noeviction"
                );
            }
            Some(_) => {}
            None => tracing::warn!(address, "cannot read maxmemory-policy: make sure that it is noeviction"),
        }
        Ok(Some(version))
    }
}
