use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use delayline_tokio::Span;
use tokio::sync::watch;

use crate::cli::redis::Redis;
use crate::cli::stop::Stop;
use crate::failure::Failure;
use crate::service::limits::Patience;
use crate::service::listener::{self, Listener};
use crate::service::origins::Origin;
use crate::service::peers::Peers;
use crate::service::reception::Reception;
use crate::upstash::{Endpoint, Limits, Permissions, Token, Upstream, too_many_connections};

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
    #[command(flatten)]
    limits: Limits,
}

/// The endpoint, listening but not yet answering.
pub struct RestServer {
    listener: Listener,
    address: SocketAddr,
    reception: Reception,
    peers: Arc<Peers>,
    patience: Patience,
    close: watch::Sender<bool>,
    redis: String,
}

impl Rest {
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
        rest.limits.validate()?;
        let (listener, address) = Listener::tcp(&rest.listen, true).await?;
        let listener = listener.refusing_by(too_many_connections);
        let upstream = Upstream::connect(url, redis.patience(), rest.timeout).await?;
        if rest.faults {
            tracing::warn!("clients may have requests go wrong: --faults is for tests");
        }
        let close = watch::Sender::new(false);
        let redis = upstream.address().to_owned();
        let (peers, patience) = (rest.limits.peers(), rest.limits.patience());
        let Rest { token, allow_admin, faults, limits, .. } = rest;
        let permissions = Permissions { token: token.clone(), admin: *allow_admin, faults: *faults };
        let endpoint = Endpoint::new(permissions, upstream, limits, Arc::clone(&peers), close.subscribe());
        let reception = endpoint.reception(&rest.cors);
        Ok(RestServer { listener, address, reception, peers, patience, close, redis })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` ends; then takes no new ones, and finishes the others.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        let RestServer { listener, reception, peers, patience, close, redis, .. } = self;
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!("delayline {version} listening on {listener}, commands go to {redis}");
        listener::serve(vec![(listener, reception)], peers, patience, close, stop).await;
        Ok(())
    }
}
