//! Who is connected, and what each takes of what all share.

mod bodies;
mod connections;
mod handout;
mod rates;
mod takes;

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use tokio::io::Interest;
use tokio::sync::Notify;

pub(crate) use self::bodies::NoRoom;
pub(crate) use self::handout::Handout;
pub(crate) use self::rates::TooFast;
pub(crate) use self::takes::TooManyTakes;

use self::bodies::Bodies;
use self::connections::Connections;
use self::rates::Rates;
use self::takes::Takes;
use crate::service::client_address::ClientAddress;
use crate::service::proxies::Proxies;
use crate::service::rate::RateLimit;
use crate::service::socket::Socket;

/// How often a connection is looked at that has sent more than was asked for.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);
/// Which part of all connections is closed at once, where there is no room: looking for them costs less each.
const CLOSED_AT_ONCE: usize = 64;

/// What clients may take of what all share.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerLimits {
    pub(crate) max_connections: usize,
    /// Those of a trusted proxy do not count.
    pub(crate) max_connections_per_client: Option<usize>,
    /// In bytes.
    pub(crate) max_body_memory: usize,
    pub(crate) max_takes_per_client: usize,
    /// The requests of one client.
    pub(crate) requests: Option<RateLimit>,
    /// The bytes of one client's bodies.
    pub(crate) body_bytes: Option<RateLimit>,
    pub(crate) proxies: Proxies,
}

/// The connections of a service.
pub(crate) struct Peers {
    begun: Instant,
    connected: Mutex<Connections>,
    numbers: AtomicU64,
    max_connections: usize,
    max_connections_per_client: Option<usize>,
    bodies: Bodies,
    takes: Takes,
    rates: Rates,
    proxies: Proxies,
}

/// A connection, or a request that came over none.
pub(crate) struct Peer {
    peers: Arc<Peers>,
    number: u64,
    /// Who is at the other end: a client, or a proxy.
    from: Option<ClientAddress>,
    socket: Option<Arc<Socket>>,
    /// When a byte last went over it, in milliseconds since the service began.
    active_ms: AtomicU64,
    /// How many requests have come.
    requests: AtomicU32,
    /// How many of them are under way.
    served: AtomicU32,
    /// How many of those wait for their own bodies.
    reading: AtomicU32,
    held: bodies::Held,
    handouts: handout::Handouts,
    closing: Notify,
}

/// A connection counts until this is dropped.
pub(crate) struct Connected(Arc<Peer>);

/// A request is under way until this is dropped.
pub(crate) struct Serving(Arc<Peer>);

/// A request waits for its body until this is dropped.
pub(crate) struct Reading<'a>(&'a Peer);

/// Why there is no room for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowded {
    /// Nobody has room.
    All,
    /// The client has so many.
    Client(usize),
}

impl Crowded {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Crowded::All => "too_many_connections",
            Crowded::Client(_) => "too_many_connections_of_client",
        }
    }
}

impl fmt::Display for Crowded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Crowded::All => f.write_str(
                "all connections are in use by requests that wait for the service: try again, or raise \
                 --max-connections",
            ),
            Crowded::Client(most) => write!(
                f,
                "this address has {most} connections, and more it may not have: keep them and use them again, or raise \
                 --max-connections-per-client; a proxy is named by --trusted-proxy"
            ),
        }
    }
}

impl Peers {
    pub(crate) fn new(limits: PeerLimits) -> Arc<Peers> {
        Arc::new(Peers {
            begun: Instant::now(),
            connected: Mutex::default(),
            numbers: AtomicU64::new(0),
            max_connections: limits.max_connections,
            max_connections_per_client: limits.max_connections_per_client,
            bodies: Bodies::new(limits.max_body_memory),
            takes: Takes::new(limits.max_takes_per_client),
            rates: Rates::new(limits.requests, limits.body_bytes),
            proxies: limits.proxies,
        })
    }

    /// Whom a request is from that came over no connection.
    pub(crate) fn unconnected(self: &Arc<Peers>) -> Arc<Peer> {
        self.peer(None, None)
    }

    /// A peer on a connection that has just been made.
    pub(crate) fn connecting(self: &Arc<Peers>, socket: Arc<Socket>, from: ClientAddress) -> Arc<Peer> {
        self.peer(Some(socket), Some(from))
    }

    fn peer(self: &Arc<Peers>, socket: Option<Arc<Socket>>, from: Option<ClientAddress>) -> Arc<Peer> {
        let peer = Peer {
            peers: Arc::clone(self),
            number: self.numbers.fetch_add(1, Relaxed),
            from,
            socket,
            active_ms: AtomicU64::new(0),
            requests: AtomicU32::new(0),
            served: AtomicU32::new(0),
            reading: AtomicU32::new(0),
            held: bodies::Held::default(),
            handouts: handout::Handouts::default(),
            closing: Notify::new(),
        };
        peer.is_active();
        Arc::new(peer)
    }

    /// The most connections at once.
    pub(crate) fn max_connections(&self) -> usize {
        self.max_connections
    }

    /// Makes room for one more connection from there, if need be by closing some that the service does nothing for: of the
    /// client that has most, and not of one that has fewer than the one that comes.
    pub(crate) fn make_room(&self, from: ClientAddress) -> Result<(), Crowded> {
        let mut connected = self.connected();
        let own = connected.of_client(from.counted());
        if let Some(most) = self.max_connections_per_client.filter(|most| own >= *most)
            && !self.proxies.trusts(from)
        {
            return Err(Crowded::Client(most));
        }
        if connected.len() < self.max_connections
            || connected.close_some(own, (self.max_connections / CLOSED_AT_ONCE).max(1))
        {
            return Ok(());
        }
        Err(Crowded::All)
    }

    /// Makes room for whoever comes, though there are fewer connections than there may be.
    pub(crate) fn make_room_for_anybody(&self) {
        let mut connected = self.connected();
        let part = (connected.len() / CLOSED_AT_ONCE).max(1);
        connected.close_some(0, part);
    }

    /// Closes the connection that has been silent longest, of those that the service waits for and that are `such`.
    fn close_most_silent(&self, such: impl Fn(&Peer) -> bool) {
        self.connected().close_most_silent(such);
    }

    /// Closes every connection.
    pub(crate) fn close_all(&self) {
        self.connected().close_all();
    }

    fn connected(&self) -> MutexGuard<'_, Connections> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Peer {
    /// Bytes went over it.
    pub(crate) fn is_active(&self) {
        self.active_ms.store(self.peers.now_ms(), Relaxed);
    }

    /// Whom its connection counts for.
    fn counted(&self) -> Option<ClientAddress> {
        self.from.map(ClientAddress::counted)
    }

    fn silent_ms(&self) -> u64 {
        self.peers.now_ms().saturating_sub(self.active_ms.load(Relaxed))
    }

    /// How many requests have come over it.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Relaxed)
    }

    /// For whom a request is made that has these headers; nobody can tell of one that came over no connection.
    pub(crate) fn client(&self, headers: &HeaderMap) -> Option<ClientAddress> {
        self.from.map(|from| self.peers.proxies.client(from, headers))
    }

    /// Whether it came by a Unix socket, which no web page reaches by itself.
    pub(crate) fn is_at_unix_socket(&self) -> bool {
        self.from == Some(ClientAddress::Unix)
    }

    /// Whether a request is under way.
    pub(crate) fn has_request(&self) -> bool {
        self.served.load(Relaxed) > 0
    }

    /// Whether the service, not the client, is what is waited for.
    fn is_served(&self) -> bool {
        self.served.load(Relaxed) > self.reading.load(Relaxed)
    }

    /// Its connection counts as one of the service's.
    pub(crate) fn connected(self: &Arc<Peer>) -> Connected {
        self.peers.connected().insert(self);
        Connected(Arc::clone(self))
    }

    /// Ends when its connection is to be closed.
    pub(crate) async fn closing(&self) {
        self.closing.notified().await;
    }

    /// A request has come.
    pub(crate) fn serves(self: &Arc<Peer>) -> Serving {
        self.requests.fetch_add(1, Relaxed);
        self.asks_more();
        self.also_serves()
    }

    /// A request goes on beside its answer.
    pub(crate) fn also_serves(self: &Arc<Peer>) -> Serving {
        self.served.fetch_add(1, Relaxed);
        Serving(Arc::clone(self))
    }

    pub(crate) fn reads(&self) -> Reading<'_> {
        self.reading.fetch_add(1, Relaxed);
        Reading(self)
    }

    /// Ends when the client has closed its side of the connection, even if it has sent more before, which hides that from
    /// whoever only reads what is next.
    pub(crate) async fn gone(&self) {
        let Some(socket) = &self.socket else { return std::future::pending().await };
        while let Ok(ready) = socket.ready(Interest::READABLE).await {
            if ready.is_read_closed() {
                return;
            }
            tokio::time::sleep(LOOKED_AT_EVERY).await;
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.peers.connected().remove(self.0.number);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.served.fetch_sub(1, Relaxed);
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.reading.fetch_sub(1, Relaxed);
    }
}
