use std::future::Future;

use delayline_core::wire::Dialect;
use delayline_core::{Job, Keyspace, Millis, Prefix, Shards, Transmit, Verdict};
use js_sys::Function;

use crate::World;
use crate::fetch::Post;
use crate::rest::{Answer, Endpoint, Landed, land};
use crate::timer;

/// A deployment behind a REST endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Redis<L> {
    dialect: L,
    endpoint: Endpoint,
    keys: Keyspace,
    fetch: Option<Function>,
    /// When a request is given up.
    timeout_ms: u64,
}

impl<L: Dialect> Redis<L> {
    /// `fetch` is called instead of the global one, if it is given.
    pub(crate) fn new(
        dialect: L,
        endpoint: Endpoint,
        prefix: &Prefix,
        shards: Shards,
        fetch: Option<Function>,
        timeout_ms: u64,
    ) -> Redis<L> {
        Redis { dialect, endpoint, keys: Keyspace::new(prefix, shards), fetch, timeout_ms }
    }

    pub(crate) fn send<'a>(&'a self, transmit: Transmit<'_>) -> impl Future<Output = Landed> + use<'a, L> {
        let kinds = transmit.kinds();
        let request = self.endpoint.request(self.dialect, &self.keys, &transmit);
        async move {
            let post = Post {
                url: request.url,
                headers: request.headers.into(),
                body: &request.body,
                timeout_ms: self.timeout_ms,
            };
            let answer = async {
                let got = post.send(self.fetch.as_ref()).await?;
                Ok(Answer { status: got.status(), body: got.bytes().await? })
            };
            land(self.dialect, &kinds, answer.await)
        }
    }
}

/// Who gets jobs.
pub(crate) trait Deliver {
    /// Delivers one, in bounded time.
    fn deliver(&self, job: Job) -> impl Future<Output = Verdict>;
}

/// Nobody: for callers that take no managed jobs.
pub(crate) struct Nobody;

impl Deliver for Nobody {
    async fn deliver(&self, _: Job) -> Verdict {
        Verdict::Release
    }
}

/// A deployment, and who gets its jobs.
pub(crate) struct Live<'a, L, D> {
    pub(crate) redis: &'a Redis<L>,
    pub(crate) to: D,
}

impl<'l, L: Dialect, D: Deliver> World for Live<'l, L, D> {
    fn now(&self) -> Millis {
        timer::now()
    }

    fn send<'a>(&'a self, transmit: Transmit<'_>) -> impl Future<Output = Landed> + use<'a, 'l, L, D> {
        self.redis.send(transmit)
    }

    fn deliver(&self, job: Job) -> impl Future<Output = Verdict> {
        self.to.deliver(job)
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> {
        timer::sleep(ms)
    }
}
