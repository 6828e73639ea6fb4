use std::future::Future;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use bytesize::ByteSize;
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use delayline_tokio::{Client, Span};
use tokio::sync::watch;

use crate::access::Access;
use crate::app::App;
use crate::failure::Failure;
use crate::forwarding::Forwarding;
use crate::limits::{Limits, Patience};
use crate::listener::{GRACE, Listener};
use crate::peers::Peers;
use crate::recorder;
use crate::recording::Recording;
use crate::redis::Redis;
use crate::routes::router;
use crate::site::Site;
use crate::stop::Stop;

const PAYLOAD_MAX: u64 = 16 << 20;
/// What settles many leases makes as many requests of the engine.
const REQUESTS_LEAST: usize = 4_096;
const RECORDER_SIZES: RangeInclusive<u64> = 64 << 10..=1 << 30;

/// Serves the queues over HTTP, in memory unless a Redis is given, until it is told to stop.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
It stops by SIGTERM or ctrl-c once it has answered what it was asked; told twice, it waits for nothing.

Examples:
  delayline serve                                # in memory: nothing survives a restart
  delayline serve --redis redis://127.0.0.1/ --strict
  delayline serve --listen 127.0.0.1:4848 --max-payload 4MiB --timeout 5s --access-log
  delayline serve --redis redis://127.0.0.1/ --forward-to 'list:out-*'
  delayline serve --flight-recorder serve.recording")]
pub struct Serve {
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4747", env = "DELAYLINE_LISTEN")]
    listen: String,
    /// Listen even where other machines can reach it: there are no tokens yet
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_INSECURE",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    insecure: bool,
    /// Refuse to start on a Redis that may evict jobs
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_STRICT",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    strict: bool,
    /// The largest payload of a job, up to 16MiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB", env = "DELAYLINE_MAX_PAYLOAD")]
    max_payload: ByteSize,
    /// How long a request may wait for Redis
    #[arg(long, value_name = "TIME", default_value = "10s", env = "DELAYLINE_TIMEOUT")]
    timeout: Span,
    /// Write a log line for each request
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_ACCESS_LOG",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    access_log: bool,
    /// Let queues be told over HTTP to forward to destinations like this, as in list:out-*; may be repeated
    #[arg(long, value_name = "PATTERN", env = "DELAYLINE_FORWARD_TO", value_delimiter = ',')]
    forward_to: Vec<String>,
    /// Record what the engine is told, and save it into this file at the end, if the engine panics, and at SIGUSR1
    #[arg(long, value_name = "FILE", env = "DELAYLINE_FLIGHT_RECORDER")]
    flight_recorder: Option<PathBuf>,
    /// How much of it to keep, 64KiB to 1GiB: the latest
    #[arg(long, value_name = "SIZE", default_value = "16MiB", env = "DELAYLINE_FLIGHT_RECORDER_SIZE")]
    flight_recorder_size: ByteSize,
    #[command(flatten)]
    limits: Limits,
}

/// The service, listening but not yet answering.
pub struct Server {
    listener: Listener,
    client: Client,
    max_payload: usize,
    site: Site,
    peers: Arc<Peers>,
    patience: Patience,
    close: watch::Sender<bool>,
    recording: Option<Recording>,
    access: Access,
    forwarding: Forwarding,
}

impl Server {
    /// Connects and listens.
    pub async fn bind(serve: &Serve, redis: &Redis) -> Result<Server, Failure> {
        let max_payload = serve.max_payload()?;
        serve.limits.validate()?;
        let listener = Listener::bind(&serve.listen, serve.insecure).await?;
        recorder::install();
        let (peers, patience) = (serve.limits.peers(), serve.limits.patience());
        let builder = redis
            .patient_builder()
            .requests(peers.max_connections().max(REQUESTS_LEAST))
            .max_memory(serve.limits.max_memory())
            .pump(true)
            .strict(serve.strict)
            .max_payload(max_payload);
        let builder = builder.timeout(Duration::from_millis(serve.timeout.0)).grace(GRACE);
        let recording = serve.recording()?;
        let builder = match &recording {
            Some(recording) => builder.flight_recorder(recording.recorder()),
            None => builder,
        };
        let client = builder.connect(redis.url().unwrap_or("memory://")).await?;
        if client.is_memory() {
            tracing::warn!(
                "jobs are kept in memory: nothing survives a restart; --redis redis://… keeps them"
            );
        }
        let site = Site::new(&serve.listen, listener.address(), serve.limits.hosts());
        let close = watch::Sender::new(false);
        let (access, forwarding) = (Access::new(serve.access_log), Forwarding::to(&serve.forward_to));
        Ok(Server {
            listener,
            client,
            max_payload,
            site,
            peers,
            patience,
            close,
            recording,
            access,
            forwarding,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Its client, for whoever tests what becomes of it.
    #[doc(hidden)]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its routes without its listener, for whoever calls them in process.
    #[doc(hidden)]
    pub fn router(&self) -> Router {
        let Server { client, max_payload, site, forwarding, peers, patience, close, access, .. } = self;
        let (client, site, forwarding) = (client.clone(), site.clone(), forwarding.clone());
        let (peers, closing) = (Arc::clone(peers), close.subscribe());
        let app = App::new(client, *max_payload, site, forwarding, peers, *patience, closing);
        let access = access.clone();
        router(&Arc::new(app)).layer(from_fn(move |request, next| access.clone().log(request, next)))
    }

    /// Answers requests until `stop` ends; then takes no new ones, ends long polls, and finishes the others.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        let router = self.router();
        let Server { listener, client, peers, patience, close, recording, .. } = self;
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!(
            "delayline {version} listening on http://{}, jobs in {}",
            listener.address(),
            client.address()
        );
        tokio::select! {
            () = listener.serve(router, peers, patience, close, stop) => {}
            () = recorder::keep_up() => {}
            failed = saving(recording.as_ref()) => failed?,
            panicked = client.failed() => return Err(panicked.into()),
        }
        client.close().await;
        if let Some(recording) = &recording {
            recording.save().await;
        }
        Ok(())
    }
}

async fn saving(recording: Option<&Recording>) -> std::io::Result<()> {
    match recording {
        Some(recording) => recording.save_when_asked().await,
        None => std::future::pending().await,
    }
}

impl Serve {
    /// Serves until it is told to stop, by SIGTERM or ctrl-c; told twice, it waits for nothing.
    pub(crate) async fn run(&self, redis: &Redis) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let server = tokio::select! {
            bound = Server::bind(self, redis) => bound?,
            () = stop.clone().asked() => return Ok(()),
        };
        tokio::select! {
            done = server.run_until(stop.clone().asked()) => done,
            () = stop.insisted() => Err(Failure::Interrupted),
        }
    }

    fn max_payload(&self) -> Result<usize, Failure> {
        let bytes = self.max_payload.as_u64();
        match usize::try_from(bytes) {
            Ok(payload) if (1..=PAYLOAD_MAX).contains(&bytes) => Ok(payload),
            _ => {
                Err(Failure::Usage(format!("--max-payload is {}, but must be 1B to 16MiB", self.max_payload)))
            }
        }
    }

    fn recording(&self) -> Result<Option<Recording>, Failure> {
        let Some(path) = &self.flight_recorder else { return Ok(None) };
        let bytes = self.flight_recorder_size.as_u64();
        let fits = usize::try_from(bytes).ok().filter(|_| RECORDER_SIZES.contains(&bytes));
        let size = fits.ok_or_else(|| {
            let size = self.flight_recorder_size;
            Failure::Usage(format!("--flight-recorder-size is {size}, but must be 64KiB to 1GiB"))
        })?;
        let recording = Recording::begin(path, size);
        recording.map(Some).map_err(|why| Failure::Unwritable { path: path.clone(), why })
    }
}
