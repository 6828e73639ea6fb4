use std::future::Future;
use std::net::SocketAddr;

use axum::Router;
use clap::Args;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::listener::Listener;
use crate::redis::Redis;
use crate::rest::{Endpoint, Token, Upstream};
use crate::stop::Stop;

/// Serves any Redis over HTTP as Upstash's REST API does, until it is told to stop: for workers at the edge, which have no
/// TCP, and for the client `@upstash/redis`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Whoever has the token may do to that Redis what its user may: put TLS in front of it where others can listen.
It stops by SIGTERM or ctrl-c once it has answered what it was asked; told twice, it waits for nothing.

Examples:
  delayline rest --token s3cret
  delayline rest --redis redis://127.0.0.1/ --listen 127.0.0.1:8079 --token s3cret")]
pub struct Rest {
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8079", env = "DELAYLINE_REST_LISTEN")]
    listen: String,
    /// What clients must send to be let in
    #[arg(long, value_name = "TOKEN", env = "DELAYLINE_REST_TOKEN", hide_env_values = true)]
    token: Token,
    /// Let clients plan faults for the requests to come, by POST /_faults: for tests
    #[arg(long, hide = true)]
    faults: bool,
}

/// The endpoint, listening but not yet answering.
pub struct RestServer {
    listener: Listener,
    router: Router,
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
        let listener = Listener::bind(&rest.listen, true).await?;
        let upstream = Upstream::connect(url).await?;
        if rest.faults {
            tracing::warn!("clients may have requests go wrong: --faults is for tests");
        }
        let close = watch::Sender::new(false);
        let redis = upstream.address().to_owned();
        let endpoint = Endpoint::new(rest.token.clone(), upstream, rest.faults, close.subscribe());
        Ok(RestServer { listener, router: endpoint.router(), close, redis })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Answers requests until `stop` ends; then takes no new ones, and finishes the others.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        let RestServer { listener, router, close, redis } = self;
        tracing::info!("listening on http://{}, commands go to {redis}", listener.address());
        Ok(listener.serve(router, close, stop).await?)
    }
}
