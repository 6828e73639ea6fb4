//! The making of an engine, and of all that works for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use delayline_core::recording::Recorded;
use delayline_core::{Config, Keyspace, Prefix, Pumping, UnixMs};
use tokio::runtime::Handle;

use super::{OWN_TOKENS, Owner};
use crate::clock::{self, Alarm, Clock};
use crate::entropy;
use crate::held::{self, Seat};
use crate::inbox::{self, Bell, Desk, Inboxes};
use crate::link::RedisLink;
use crate::meters::Meters;
use crate::runner::Runner;
use crate::site::Site;
use crate::store::Store;
use crate::when::unix_ms;
use crate::{Error, FlightRecorder, Invalid};

/// What an engine is made of.
pub(crate) struct Plan {
    pub(crate) store: Store,
    pub(crate) prefix: Prefix,
    pub(crate) config: Config,
    pub(crate) grace: Duration,
    pub(crate) runner: Option<Runner>,
    pub(crate) site: Arc<Site>,
    pub(crate) recorder: Option<FlightRecorder>,
}

/// Makes an engine: on a thread of its own; on the caller's runtime if a test holds the time.
pub(crate) fn start(plan: Plan) -> Result<Desk, Error> {
    let is_test = plan.store.held().is_some();
    let (engine, mut desk, crew) = Crew::hire(plan)?;
    if is_test {
        let runtime = Handle::try_current().map_err(|_| Invalid::NoRuntime)?;
        runtime.spawn(crew.work(engine));
        return Ok(desk);
    }
    // Last, since a runtime cannot be dropped within another.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refused(&error))?;
    let (done, is_done) = std::sync::mpsc::channel();
    desk.thread = Some(Mutex::new(is_done));
    let thread = std::thread::Builder::new().name("delayline".to_owned());
    let work = move || {
        let _done: std::sync::mpsc::Sender<()> = done;
        runtime.block_on(crew.work(engine));
    };
    thread.spawn(work).map_err(|error| refused(&error))?;
    Ok(desk)
}

fn refused(error: &std::io::Error) -> Error {
    Error::System { what: "a thread", why: error.to_string() }
}

/// All that works for an engine.
struct Crew {
    owner: Owner,
    seat: Option<Seat>,
    store: Store,
    prefix: Prefix,
    heads: bool,
    inboxes: Inboxes,
    bell: Bell,
}

impl Crew {
    fn hire(plan: Plan) -> Result<(Recorded, Desk, Crew), Error> {
        let held = plan.store.held();
        let clock = Clock::start(held.clone());
        let config = match held {
            Some(_) => Config {
                same_clock: true,
                poll_ms: held::POLL_MS,
                pump_lease_ms: held::PUMP_LEASE_MS,
                ..plan.config
            },
            None => plan.config,
        };
        let now = clock.now();
        let origin = UnixMs(unix_ms(clock::wall(held.as_deref())).0.saturating_sub(now.0));
        let sink = plan.recorder.map(|recorder| recorder.begin(origin));
        let engine = Recorded::new(config, entropy::identity(&plan.store)?, now, sink)?;
        let (desk, inboxes, bell) = inbox::open(clock.clone(), plan.site.clone());
        let pumping = engine.config().pump;
        let seat = held.as_ref().map(|held| held.seat(inboxes.signal.clone()));
        let owner = Owner {
            clock,
            held,
            site: plan.site,
            meters: Meters::new(),
            grace_ms: crate::invalid::millis(plan.grace),
            listening: plan.runner.is_some() || pumping == Pumping::Always,
            runner: plan.runner,
            signal: inboxes.signal.clone(),
            works: HashMap::new(),
            waiters: HashMap::new(),
            waiting: VecDeque::new(),
            idlers: Vec::new(),
            sweep: None,
            own_tokens: OWN_TOKENS,
            stopping: None,
            ended: None,
            is_hushed: false,
        };
        let heads = pumping != Pumping::Never;
        Ok((engine, desk, Crew { owner, seat, store: plan.store, prefix: plan.prefix, heads, inboxes, bell }))
    }

    async fn work(self, engine: Recorded) {
        let Crew { owner, seat, store, prefix, heads, inboxes, bell } = self;
        let alarm = Alarm::new(&owner.clock, seat);
        let identity = engine.identity();
        match store {
            Store::Redis(client) => {
                let keys = Arc::new(Keyspace::new(&prefix, engine.config().shards));
                let link = RedisLink::new(client, keys, owner.site.clone(), identity, heads, bell);
                owner.run(engine, link, inboxes, alarm).await;
            }
            #[cfg(feature = "memory")]
            Store::Memory(memory) => {
                let heads = heads.then_some(engine.config().shards);
                let link = crate::memory::MemoryLink::new(memory, identity, heads, bell);
                owner.run(engine, link, inboxes, alarm).await;
            }
        }
    }
}
