use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_tests::edge::{Push, Receiver, Rest, Setup, Worker, built, workerd};
use delayline_tests::{RedisServer, block_on};
use delayline_tokio::{Client, Inspected, JobId, Publish, Queue, Stats};

use crate::quiet::Quiet;

/// What pushes are signed with.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// What publishers must know.
pub(crate) const API_TOKEN: &str = "a-token-of-publishers";

/// A worker that delivers, on a Redis behind REST, and whom it delivers to.
pub(crate) struct Site {
    pub(crate) worker: Worker,
    pub(crate) receiver: Receiver,
    pub(crate) rest: Rest,
    pub(crate) redis: RedisServer,
    _quiet: Quiet,
}

/// Which worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// `driver-wasm/examples/worker`
    Example,
    /// `driver-wasm/examples/durable-object`
    DurableObject,
    /// `tests/edge/courier`
    Courier,
}

impl Which {
    pub(crate) fn folder(self) -> std::path::PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        root.join(match self {
            Which::Example => "driver-wasm/examples/worker",
            Which::DurableObject => "driver-wasm/examples/durable-object",
            Which::Courier => "tests/edge/courier",
        })
    }
}

impl Site {
    /// Starts it, where that can be done.
    pub(crate) fn start(which: Which, variables: &[(&str, &str)]) -> Option<Site> {
        Site::with(Quiet::beside_others(), which, variables)
    }

    /// Starts it once no other test runs, where that can be done, for a test that times what it sees.
    pub(crate) fn alone(which: Which) -> Option<Site> {
        Site::with(Quiet::alone(), which, &[])
    }

    fn with(quiet: Quiet, which: Which, variables: &[(&str, &str)]) -> Option<Site> {
        let workerd = workerd()?;
        let bundle = built(&which.folder())?;
        let (redis, receiver) = (RedisServer::plain(), Receiver::start());
        let rest = Rest::start(env!("CARGO_BIN_EXE_service"), &redis);
        let mut setup = Setup::of(&bundle)
            .variable("UPSTASH_REDIS_REST_URL", &rest.url())
            .variable("UPSTASH_REDIS_REST_TOKEN", rest.token())
            .variable("PUSH_URL", &receiver.url())
            .variable("DELAYLINE_PLAIN_HTTP", "true")
            .variable("DELAYLINE_WEBHOOK_SECRET", SECRET)
            .variable("DELAYLINE_API_TOKEN", API_TOKEN);
        for (name, value) in variables {
            setup = setup.variable(name, value);
        }
        setup = match which {
            Which::Example => setup,
            Which::DurableObject => setup.durable_object("TICKER", "Ticker"),
            Which::Courier => setup.queue("NOTES", "notes"),
        };
        Some(Site { worker: workerd.start(&setup), receiver, rest, redis, _quiet: quiet })
    }

    /// Publishes natively.
    pub(crate) fn publish(&self, queue: &str, jobs: impl Fn(&Queue) -> Vec<Publish>) {
        block_on(async {
            let client = Client::connect(&self.redis.url()).await.expect("a client");
            let queue = client.bytes(queue).expect("a name");
            for published in queue.publish_all(jobs(&queue)).await {
                published.expect("a job is published");
            }
            client.close().await;
        });
    }

    /// Publishes jobs that are due, with their names for bodies.
    pub(crate) fn publish_due(&self, queue: &str, count: usize) {
        self.publish(queue, |queue| {
            (0..count)
                .map(|number| queue.publish_bytes(format!("{number}")).id(format!("job-{number}")))
                .collect()
        });
    }

    pub(crate) fn stats(&self, queue: &str) -> Stats {
        block_on(async {
            let client = Client::connect(&self.redis.url()).await.expect("a client");
            let stats = client.bytes(queue).expect("a name").stats(0).await.expect("statistics");
            client.close().await;
            stats
        })
    }

    /// A job, in whatever state.
    pub(crate) fn kept(&self, queue: &str, id: &str) -> Option<Inspected> {
        block_on(async {
            let client = Client::connect(&self.redis.url()).await.expect("a client");
            let id: JobId = id.parse().expect("an id");
            let kept = client.bytes(queue).expect("a name").inspect(&id).await.expect("an answer");
            client.close().await;
            kept
        })
    }

    /// The bodies that were pushed, in order of their texts.
    pub(crate) fn pushed(&self) -> Vec<String> {
        let mut pushed: Vec<String> = self.receiver.pushes().iter().map(Push::text).collect();
        pushed.sort();
        pushed
    }
}

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
