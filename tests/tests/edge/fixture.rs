use std::path::Path;

use delayline_tests::RedisServer;
use delayline_tests::edge::{Push, Receiver, Rest, Setup, Worker, built, workerd};

/// A worker for the tests of the harness, between a Redis and whom it pushes to.
pub(crate) struct Fixture {
    pub(crate) worker: Worker,
    pub(crate) receiver: Receiver,
    pub(crate) rest: Rest,
    _redis: RedisServer,
}

impl Fixture {
    /// Starts it, where that can be done.
    pub(crate) fn start() -> Option<Fixture> {
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
        Some(Fixture { worker, receiver, rest, _redis: redis })
    }

    /// What the worker pushed.
    pub(crate) fn pushed(&self) -> Vec<String> {
        self.receiver.pushes().iter().map(Push::text).collect()
    }
}
