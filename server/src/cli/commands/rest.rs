use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use bytesize::ByteSize;
use clap::Args;
use delayline_tokio::Span;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::limits::{self, Patience};
use crate::listener::Listener;
use crate::peers::Peers;
use crate::redis::Redis;
use crate::rest::{Endpoint, Origin, Token, Upstream};
use crate::stop::Stop;

/// Serves any Redis over HTTP as Upstash's REST API does, until it is told to stop: for workers at the edge, which have no
/// TCP, and for the client `@upstash/redis`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Whoever has the token may read and write all data of that Redis, and run scripts: put TLS in front of it where others can
listen. A script that keeps Redis busy beyond the time-out is killed, if it has written nothing.
It stops by SIGTERM or ctrl-c once it has answered what it was asked; told twice, it waits for nothing.

Examples:
  delayline rest --token s3cret
  delayline rest --redis redis://127.0.0.1/ --listen 127.0.0.1:8079 --token s3cret
  delayline rest --token s3cret --cors https://app.example.org --timeout 5s")]
pub struct Rest {
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8079", env = "DELAYLINE_REST_LISTEN")]
    listen: String,
    /// What clients must send to be let in
    #[arg(long, value_name = "TOKEN", env = "DELAYLINE_REST_TOKEN", hide_env_values = true)]
    token: Token,
    /// How long a request may wait for Redis
    #[arg(long, value_name = "TIME", default_value = "10s", env = "DELAYLINE_REST_TIMEOUT")]
    timeout: Span,
    /// The most bytes of bodies in memory, of all requests together
    #[arg(long, value_name = "SIZE", default_value = "192MiB", env = "DELAYLINE_REST_MAX_BODY_MEMORY")]
    max_body_memory: ByteSize,
    /// Let clients do more than read and write data: CONFIG, FLUSHALL, all that the Redis user may
    #[arg(long)]
    allow_admin: bool,
    /// Let pages from there ask
    #[arg(
        long,
        help = "Let pages from there ask, as in https://app.example.org; * for any; may be repeated",
        value_name = "ORIGIN",
        env = "DELAYLINE_REST_CORS",
        value_delimiter = ','
    )]
    cors: Vec<Origin>,
    /// Let clients plan faults for the requests to come, by POST /_faults: for tests
    #[arg(long, hide = true)]
    faults: bool,
}

/// The endpoint, listening but not yet answering.
pub struct RestServer {
    listener: Listener,
    router: Router,
    peers: Arc<Peers>,
    patience: Patience,
    close: watch::Sender<bool>,
    redis: String,
}

impl Rest {
    fn peers(&self) -> Result<Arc<Peers>, Failure> {
        let bytes = self.max_body_memory.as_u64();
        if bytes < 1 << 20 {
            return Err(Failure::Usage("--max-body-memory must be 1MiB at least".to_owned()));
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Peers::new(limits::max_connections(None), bytes, 0))
    }

    /// Serves until it is told to stop, by SIGTERM or ctrl-c; told twice, it waits for nothing.
    pub(crate) async fn run(&self, redis: &Redis) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let server = tokio::select! {
            bound = RestServer::bind(self, redis) => bound?,
            () = stop.clone().asked() => return Ok(()),
        };
        tokio::select! {
            done = server.run_until(stop.clone().asked()) => done,
            () = stop.insisted() => Err(Failure::Interrupted),
        }
    }
}

impl RestServer {
    /// Connects and listens.
    pub async fn bind(rest: &Rest, redis: &Redis) -> Result<RestServer, Failure> {
        let url = redis.shared_url().ok_or(Failure::NeedsRedis("runs no Redis commands"))?;
        let listener = Listener::bind(&rest.listen, true).await?;
        let upstream = Upstream::connect(url, redis.patience(), rest.timeout).await?;
        if rest.faults {
            tracing::warn!("clients may have requests go wrong: --faults is for tests");
        }
        let close = watch::Sender::new(false);
        let redis = upstream.address().to_owned();
        let token = rest.token.clone();
        let (peers, patience) = (rest.peers()?, Patience::default());
        let clients = (Arc::clone(&peers), patience);
        let endpoint =
            Endpoint::new(token, rest.allow_admin, upstream, rest.faults, clients, close.subscribe());
        Ok(RestServer { listener, router: endpoint.router(&rest.cors), peers, patience, close, redis })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Answers requests until `stop` ends; then takes no new ones, and finishes the others.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        let RestServer { listener, router, peers, patience, close, redis } = self;
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!(
            "delayline {version} listening on http://{}, commands go to {redis}",
            listener.address()
        );
        listener.serve(router, peers, patience, close, stop).await;
        Ok(())
    }
}
