use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use delayline_http::body::PayloadLimit;
use delayline_tokio::{Client, ClientBuilder, Span};
use tokio::sync::{Mutex, Semaphore, watch};

use crate::failure::Failure;
use crate::service::access::Access;
use crate::service::app::{App, LINES_UNDER_WAY};
use crate::service::audit::Audit;
use crate::service::forwarding::Forwarding;
use crate::service::limits::{Limits, Patience};
use crate::service::listener::{self, Exposure, GRACE, ListenAddress, Listener};
use crate::service::lmstfy::{LmstfyListeners, LmstfyOptions};
use crate::service::namespaces::Namespaces;
use crate::service::origins::{Origin, Origins};
use crate::service::peers::Peers;
use crate::service::push::{PushSettings, PushStates, Pusher};
use crate::service::reception::Reception;
use crate::service::recorder;
use crate::service::recording::Recording;
use crate::service::registry::Registry;
use crate::service::request_context::RequestContext;
use crate::service::routes::reception;
use crate::service::site::Site;
use crate::service::tls::{Tls, TlsFiles};
use crate::service::tokens::Tokens;

/// What settles many leases makes as many requests of the engine.
const REQUESTS_LEAST: usize = 4_096;

/// How a service is to be.
pub(crate) struct ServerSettings {
    /// Where to listen.
    pub(crate) listen: Vec<ListenAddress>,
    /// Who may reach it there.
    pub(crate) exposure: Exposure,
    pub(crate) tls: Option<TlsFiles>,
    /// Whose pages may ask.
    pub(crate) cors: Vec<Origin>,
    /// Whether it refuses a Redis that may evict jobs.
    pub(crate) strict: bool,
    pub(crate) max_payload: usize,
    /// How long a request may wait for Redis.
    pub(crate) timeout: Span,
    pub(crate) access_log: bool,
    pub(crate) forward_to: Vec<String>,
    pub(crate) recording: Option<Recording>,
    /// How jobs are pushed; `None` if others do that.
    pub(crate) push: Option<PushSettings>,
    pub(crate) limits: Limits,
    /// Tokens that may do everything.
    pub(crate) bootstrap: Vec<String>,
    /// Whether requests must show a token though there is none yet.
    pub(crate) require_tokens: bool,
    pub(crate) audit: Audit,
    pub(crate) lmstfy: LmstfyOptions,
}

/// The service, listening but not yet answering.
pub struct Server {
    listeners: Vec<Listener>,
    lmstfy: LmstfyListeners,
    tls: Option<Arc<Tls>>,
    client: Client,
    tokens: Arc<Tokens>,
    namespaces: Arc<Namespaces>,
    audit: Audit,
    registry: Arc<Registry>,
    pusher: Option<Pusher>,
    max_payload: usize,
    site: Site,
    peers: Arc<Peers>,
    patience: Patience,
    close: watch::Sender<bool>,
    recording: Option<Recording>,
    forwarding: Forwarding,
}

/// A service's routes, for requests that come over no connection.
#[doc(hidden)]
#[derive(Clone)]
pub struct Door {
    reception: Reception,
    peers: Arc<Peers>,
}

impl Server {
    /// Listens, and connects to where the jobs are.
    pub(crate) async fn bind(
        settings: ServerSettings,
        builder: ClientBuilder,
        url: &str,
    ) -> Result<Server, Failure> {
        let ServerSettings { max_payload, limits, recording, push, .. } = settings;
        let is_guarded = settings.require_tokens || !settings.bootstrap.is_empty();
        let tls = settings.tls.map(Tls::open).transpose()?;
        // Tokens may be in Redis: whether there are any is looked up below.
        let may_be_reached = settings.exposure.is_exposed || is_guarded || !url.starts_with("memory:");
        let exposure = Exposure { is_exposed: may_be_reached, ..settings.exposure };
        let mut listeners = Vec::with_capacity(settings.listen.len());
        for address in &settings.listen {
            listeners.push(Listener::bind(address, exposure).await?.with_tls(tls.clone()));
        }
        let (insecure, access) = (settings.exposure.is_exposed, Access::new(settings.access_log));
        let lmstfy =
            LmstfyListeners::bind(&settings.lmstfy, insecure, limits.hosts(), &access, tls.as_ref()).await?;
        recorder::install();
        let (peers, patience) = (limits.peers(), limits.patience());
        let builder = builder
            .requests(peers.max_connections().max(REQUESTS_LEAST))
            .max_memory(limits.max_memory())
            .pump(true)
            .strict(settings.strict)
            .max_payload(max_payload)
            .timeout(Duration::from_millis(settings.timeout.0))
            .grace(GRACE);
        let builder = match &recording {
            Some(recording) => builder.flight_recorder(recording.recorder()),
            None => builder,
        };
        let client = builder.connect(url).await?;
        if client.is_memory() {
            tracing::warn!(
                "jobs are kept in memory: nothing survives a restart; --redis redis://… keeps them"
            );
        }
        let registry = Registry::open(url, client.prefix()).await?;
        let tokens = Tokens::new(Arc::clone(&registry), &settings.bootstrap, settings.require_tokens).await?;
        let mut addresses = listeners.iter().filter_map(Listener::address);
        let reachable = addresses.find(|address| !address.ip().is_loopback());
        if let Some(reachable) = reachable.filter(|_| !settings.exposure.is_exposed && !tokens.are_required())
        {
            client.close().await;
            return Err(Failure::Exposed(reachable));
        }
        let namespaces = Namespaces::new(client.clone(), Arc::clone(&registry));
        let site = Site::new(&listeners, limits.hosts(), Origins::new(&settings.cors));
        let close = watch::Sender::new(false);
        let pusher = push.map(|push| Pusher::start(&client, &registry, push, close.subscribe()));
        Ok(Server {
            listeners: listeners.into_iter().map(|listener| listener.with_access(access.clone())).collect(),
            lmstfy,
            tls,
            client,
            tokens: Arc::new(tokens),
            namespaces: Arc::new(namespaces),
            audit: settings.audit,
            registry,
            pusher,
            max_payload,
            site,
            peers,
            patience,
            close,
            recording,
            forwarding: Forwarding::to(&settings.forward_to),
        })
    }

    /// The first address that it listens on; none if it listens at Unix sockets alone.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listeners.iter().find_map(Listener::address)
    }

    /// Where it listens for clients of lmstfy, and for its administrators.
    pub fn lmstfy_addresses(&self) -> [Option<SocketAddr>; 2] {
        self.lmstfy.addresses()
    }

    /// Its client, for whoever tests what becomes of it.
    #[doc(hidden)]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What answers its requests without its listener, for whoever asks in process.
    #[doc(hidden)]
    pub fn door(&self) -> Door {
        Door { reception: reception(&self.app()), peers: Arc::clone(&self.peers) }
    }

    fn app(&self) -> Arc<App> {
        Arc::new(App {
            client: self.client.clone(),
            max_payload: PayloadLimit { bytes: self.max_payload, setting: "--max-payload" },
            forwarding: self.forwarding.clone(),
            site: self.site.clone(),
            peers: Arc::clone(&self.peers),
            patience: self.patience,
            tokens: Arc::clone(&self.tokens),
            namespaces: Arc::clone(&self.namespaces),
            audit: self.audit.clone(),
            push: PushStates::new(&self.registry, self.pusher.as_ref()),
            lines: Semaphore::new(LINES_UNDER_WAY),
            measured: Mutex::default(),
            closing: self.close.subscribe(),
        })
    }

    /// Answers requests until `stop` ends; then takes no new ones, ends long polls, and finishes the others.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        let app = self.app();
        let reception = reception(&app);
        let Server {
            listeners,
            lmstfy,
            tls,
            client,
            registry,
            pusher,
            peers,
            patience,
            close,
            recording,
            ..
        } = self;
        let version = env!("CARGO_PKG_VERSION");
        let places: Vec<String> = listeners.iter().map(Listener::to_string).collect();
        tracing::info!(
            "delayline {version} listening on {}, jobs in {}",
            places.join(", "),
            client.address()
        );
        let pushing = async {
            if let Some(pusher) = pusher {
                pusher.ended(GRACE).await;
            }
        };
        let listeners = listeners.into_iter().map(|listener| (listener, reception.clone()));
        let listeners = listeners.chain(lmstfy.routed(&app, registry)?).collect();
        tokio::select! {
            ((), ()) = async { tokio::join!(listener::serve(listeners, peers, patience, close, stop), pushing) } => {}
            () = recorder::keep_up() => {}
            failed = saving(recording.as_ref()) => failed?,
            failed = keeping_fresh(tls) => failed?,
            panicked = client.failed() => return Err(panicked.into()),
        }
        client.close().await;
        if let Some(recording) = &recording {
            recording.save().await;
        }
        Ok(())
    }
}

impl Door {
    /// Answers a request that comes over no connection.
    pub async fn answer(&self, request: Request) -> Response {
        self.reception.answer(RequestContext::new(self.peers.unconnected(), None), request).await
    }
}

async fn keeping_fresh(tls: Option<Arc<Tls>>) -> std::io::Result<()> {
    match tls {
        Some(tls) => tls.keep_fresh().await,
        None => std::future::pending().await,
    }
}

async fn saving(recording: Option<&Recording>) -> std::io::Result<()> {
    match recording {
        Some(recording) => recording.save_when_asked().await,
        None => std::future::pending().await,
    }
}
