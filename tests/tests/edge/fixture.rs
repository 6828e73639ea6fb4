use std::path::Path;

use delayline_tests::RedisServer;
use delayline_tests::edge::{Push, Receiver, Rest, Setup, Worker, built, workerd};

use crate::quiet::Quiet;
use crate::site::Site;

/// A worker for the tests of the harness, between a Redis and whom it pushes to.
pub(crate) struct Fixture {
    pub(crate) worker: Worker,
    pub(crate) receiver: Receiver,
    pub(crate) rest: Rest,
    _redis: RedisServer,
    _quiet: Option<Quiet>,
}

impl Fixture {
    /// Starts it, where that can be done.
    pub(crate) fn start() -> Option<Fixture> {
        Fixture::with(Some(Quiet::beside_others()))
    }

    /// Starts it in a test that has a site, where that can be done.
    #[cfg(target_os = "linux")]
    pub(crate) fn beside(_: &Site) -> Option<Fixture> {
        Fixture::with(None)
    }

    fn with(quiet: Option<Quiet>) -> Option<Fixture> {
        let workerd = workerd()?;
        let bundle = built(&Path::new(env!("CARGO_MANIFEST_DIR")).join("edge/fixture"))?;
        let (redis, receiver) = (RedisServer::plain(), Receiver::start());
        let rest = Rest::start(env!("CARGO_BIN_EXE_service"), &redis);
        let setup = Setup::of(&bundle)
            .variable("UPSTASH_REDIS_REST_URL", &rest.url())
            .variable("UPSTASH_REDIS_REST_TOKEN", rest.token())
            .variable("PUSH_URL", &receiver.url())
            .durable_object("TICKER", "Ticker")
            .queue("NOTES", "notes");
        let worker = workerd.start(&setup);
        Some(Fixture { worker, receiver, rest, _redis: redis, _quiet: quiet })
    }

    /// What the worker pushed.
    pub(crate) fn pushed(&self) -> Vec<String> {
        self.receiver.pushes().iter().map(Push::text).collect()
    }
}
