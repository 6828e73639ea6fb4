mod connection;
mod stream;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use delayline_http::Problem;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{unconstrained, yield_now};
use tokio::time::sleep;

use self::stream::Stream;
use crate::failure::Failure;
use crate::limits::Patience;
use crate::peers::Peers;
use crate::seldom::Seldom;

/// How long requests under way may take to end after the process was told to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How many connections at once are told that there are too many.
const REFUSED_AT_ONCE: usize = 64;
/// How long one of them is listened to.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);
/// How many connections wait to be accepted: as many as the system allows, which is less.
const BACKLOG: u32 = 16_384;
/// How many connections are accepted before others have their turn: as many as wait at most, on most systems.
const ADMITTED_AT_ONCE: u32 = 4_096;
/// How long nothing is accepted after the system had no descriptor, or no memory, for it.
const PAUSE: Duration = Duration::from_millis(50);
/// When a client is asked whether it is still there, if it says nothing.
const PROBED_AFTER: Duration = Duration::from_secs(60);

/// Where HTTP requests are heard.
pub(crate) struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
}

/// What the connections of a listener share.
struct Hall {
    router: Router,
    peers: Arc<Peers>,
    patience: Patience,
    closing: watch::Receiver<bool>,
    refusing: Arc<Semaphore>,
    /// Dropped with the last connection.
    open: mpsc::Sender<()>,
    warned: Seldom,
}

impl Listener {
    /// Listens on a host and port; where other machines can reach it, only if `exposed` allows that.
    pub(crate) async fn bind(place: &str, exposed: bool) -> Result<Listener, Failure> {
        let refused = |why| Failure::Listen { address: place.to_owned(), why };
        let addresses: Vec<SocketAddr> = lookup_host(place).await.map_err(refused)?.collect();
        let reachable = addresses.iter().find(|address| !address.ip().is_loopback());
        if let Some(reachable) = reachable.filter(|_| !exposed) {
            return Err(Failure::Exposed(*reachable));
        }
        let tcp = listen(&addresses).map_err(refused)?;
        let address = tcp.local_addr()?;
        Ok(Listener { tcp, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` ends; then says so by `close`, takes no new ones, and finishes the others.
    pub(crate) async fn serve(
        self,
        router: Router,
        peers: Arc<Peers>,
        patience: Patience,
        close: watch::Sender<bool>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        let (open, mut ended) = mpsc::channel(1);
        let closing = close.subscribe();
        let refusing = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
        let hall = Hall { router, peers, patience, closing, refusing, open, warned: Seldom::default() };
        tokio::select! {
            // However busy the others are, all who wait are let in at once: else the system turns away who comes next.
            () = unconstrained(hall.receive(&self.tcp)) => {}
            () = stop => {}
        }
        drop(self.tcp);
        close.send_replace(true);
        let Hall { peers, open, .. } = hall;
        drop(open);
        tokio::select! {
            _ = ended.recv() => {}
            () = sleep(GRACE) => {
                tracing::warn!("requests were cut off: they took over {GRACE:?} to end");
                peers.close_all();
            }
        }
    }
}

impl Hall {
    /// Serves whoever connects; never ends.
    async fn receive(&self, tcp: &TcpListener) {
        let mut admitted = 0;
        loop {
            match tcp.accept().await {
                Ok((stream, from)) => {
                    self.admit(stream, from);
                    admitted += 1;
                    if admitted % ADMITTED_AT_ONCE == 0 {
                        yield_now().await;
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    if self.warned.is_due("not accepted").is_some() {
                        tracing::warn!(%error, "connections cannot be accepted");
                    }
                    self.peers.make_room_for_anybody();
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn admit(&self, stream: TcpStream, from: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBED_AFTER));
        if !self.peers.make_room(from) {
            return self.refuse(stream, from);
        }
        let stream = Arc::new(stream);
        let peer = self.peers.connecting(Arc::clone(&stream), from);
        let stream = Stream::new(stream, Arc::clone(&peer), self.patience);
        let (router, patience, closing) = (self.router.clone(), self.patience, self.closing.clone());
        let (connected, open) = (peer.connected(), self.open.clone());
        tokio::spawn(async move {
            connection::serve(stream, peer, router, patience, closing).await;
            drop((connected, open));
        });
    }

    /// Says that there are too many, unless too many are told so.
    fn refuse(&self, stream: TcpStream, from: SocketAddr) {
        if self.warned.is_due("refused").is_some() {
            tracing::warn!(
                "connections are refused: there are as many as may be, and all wait for the service"
            );
        }
        let Ok(place) = Arc::clone(&self.refusing).try_acquire_owned() else { return };
        let stream = Arc::new(stream);
        let peer = self.peers.connecting(Arc::clone(&stream), from);
        let patience = Patience { idle: REFUSED_WITHIN, ..self.patience };
        let stream = Stream::new(stream, peer, patience);
        tokio::spawn(async move {
            let _ =
                tokio::time::timeout(REFUSED_WITHIN, connection::refuse(stream, patience, too_many)).await;
            drop(place);
        });
    }
}

fn too_many() -> Problem {
    let detail = "all connections are in use by requests that wait for the service: try again, or raise \
                  --max-connections";
    Problem::later("too_many_connections", detail)
}

/// Listens on the first address that can be had.
fn listen(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match listen_on(*address) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Elsewhere it would let another process listen there too.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Whether it was no fault of the listener's.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};

    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
