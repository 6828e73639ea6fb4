mod address;
mod connection;
mod handshake;
#[cfg(unix)]
mod socket_file;
mod stream;
mod timer;
mod wire;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use delayline_http::Problem;
use futures_util::future::join_all;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{unconstrained, yield_now};
use tokio::time::sleep;

pub(crate) use self::address::ListenAddress;

use self::connection::Accepted;
use crate::failure::Failure;
use crate::service::access::Access;
use crate::service::client_address::ClientAddress;
use crate::service::limits::Patience;
use crate::service::peers::{Crowded, Peer, Peers};
use crate::service::reception::Reception;
use crate::service::rejection::Rejection;
use crate::service::seldom::Seldom;
use crate::service::socket::Socket;
use crate::service::tls::Tls;

/// How long requests under way may take to end after the process was told to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How many connections at once are told that there are too many.
const REFUSED_AT_ONCE: usize = 64;
/// How long one of them is listened to.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);
/// How many connections wait to be accepted: as many as the system allows, which is less.
const BACKLOG: u16 = 16_384;
/// How many connections are accepted before others have their turn: as many as wait at most, on most systems.
const ADMITTED_AT_ONCE: u32 = 4_096;
/// How long nothing is accepted after the system had no descriptor, or no memory, for it.
const PAUSE: Duration = Duration::from_millis(50);
/// When a client is asked whether it is still there, if it says nothing.
const PROBED_AFTER: Duration = Duration::from_secs(60);

/// Where HTTP requests are heard.
pub(crate) struct Listener {
    /// As it was said.
    said: ListenAddress,
    socket: Listening,
    tls: Option<Arc<Tls>>,
    refusal: fn(Crowded) -> Response,
    access: Access,
}

/// Who may connect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposure {
    /// Whether other machines may reach it.
    pub(crate) is_exposed: bool,
    /// The mode of a Unix socket.
    pub(crate) unix_mode: u32,
}

enum Listening {
    Tcp(TcpListener, SocketAddr),
    #[cfg(unix)]
    Unix {
        listener: tokio::net::UnixListener,
        _file: socket_file::SocketFile,
    },
}

/// What the connections of all listeners share.
struct Hall {
    peers: Arc<Peers>,
    patience: Patience,
    closing: watch::Receiver<bool>,
    refusing: Arc<Semaphore>,
    /// Dropped with the last connection.
    open: mpsc::Sender<()>,
    warned: Arc<Seldom>,
}

impl Listener {
    /// Listens; where other machines can reach it, only if that is allowed.
    pub(crate) async fn bind(said: &ListenAddress, exposure: Exposure) -> Result<Listener, Failure> {
        match said {
            ListenAddress::Tcp(place) => Ok(Listener::tcp(place, exposure.is_exposed).await?.0),
            #[cfg(unix)]
            ListenAddress::Unix(path) => {
                let listening = socket_file::listen(path, exposure.unix_mode, BACKLOG.into());
                let refused = |why| Failure::Listen { address: said.to_string(), why };
                let (listener, file) = listening.map_err(refused)?;
                Ok(Listener::new(said.clone(), Listening::Unix { listener, _file: file }))
            }
        }
    }

    /// Listens on a host and port; where other machines can reach it, only if `is_exposed` allows that.
    pub(crate) async fn tcp(place: &str, is_exposed: bool) -> Result<(Listener, SocketAddr), Failure> {
        let refused = |why| Failure::Listen { address: place.to_owned(), why };
        let addresses: Vec<SocketAddr> = lookup_host(place).await.map_err(refused)?.collect();
        let reachable = addresses.iter().find(|address| !address.ip().is_loopback());
        if let Some(reachable) = reachable.filter(|_| !is_exposed) {
            return Err(Failure::Exposed(*reachable));
        }
        let tcp = listen(&addresses).map_err(refused)?;
        let address = tcp.local_addr()?;
        let said = ListenAddress::Tcp(place.to_owned());
        Ok((Listener::new(said, Listening::Tcp(tcp, address)), address))
    }

    fn new(said: ListenAddress, socket: Listening) -> Listener {
        Listener { said, socket, tls: None, refusal, access: Access::default() }
    }

    /// Answers by this where there is no room for another connection, instead of by a problem.
    pub(crate) fn refusing_by(self, refusal: fn(Crowded) -> Response) -> Listener {
        Listener { refusal, ..self }
    }

    /// What is said of its requests; without this, only that some are refused.
    pub(crate) fn with_access(self, access: Access) -> Listener {
        Listener { access, ..self }
    }

    /// With TLS for its connections, unless it is at a Unix socket: nobody is between that and its clients.
    pub(crate) fn with_tls(self, tls: Option<Arc<Tls>>) -> Listener {
        let tls = tls.filter(|_| self.address().is_some());
        Listener { tls, ..self }
    }

    /// Its address, unless it is at a Unix socket.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Listening::Tcp(_, address) => Some(*address),
            #[cfg(unix)]
            Listening::Unix { .. } => None,
        }
    }

    /// The address as it was said.
    pub(crate) fn said(&self) -> &ListenAddress {
        &self.said
    }

    async fn accept(&self) -> io::Result<(Socket, ClientAddress)> {
        match &self.socket {
            Listening::Tcp(tcp, _) => {
                let (stream, from) = tcp.accept().await?;
                prepare(&stream);
                Ok((Socket::Tcp(stream), from.ip().into()))
            }
            #[cfg(unix)]
            Listening::Unix { listener, .. } => {
                Ok((Socket::Unix(listener.accept().await?.0), ClientAddress::Unix))
            }
        }
    }
}

impl fmt::Display for Listener {
    /// Where clients find it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        match self.address() {
            Some(address) => write!(f, "{scheme}://{address}"),
            None => self.said.fmt(f),
        }
    }
}

/// Answers requests at all these until `stop` ends; then says so by `close`, takes no new ones, and finishes the others.
pub(crate) async fn serve(
    listeners: Vec<(Listener, Reception)>,
    peers: Arc<Peers>,
    patience: Patience,
    close: watch::Sender<bool>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let (open, mut ended) = mpsc::channel(1);
    let closing = close.subscribe();
    let refusing = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
    let hall = Hall { peers, patience, closing, refusing, open, warned: Arc::default() };
    let receiving = join_all(listeners.iter().map(|(listener, reception)| hall.receive(listener, reception)));
    tokio::select! {
        // However busy the others are, all who wait are let in at once: else the system turns away who comes next.
        _ = unconstrained(receiving) => {}
        () = stop => {}
    }
    drop(listeners);
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

impl Hall {
    /// Serves whoever connects; never ends.
    async fn receive(&self, listener: &Listener, reception: &Reception) {
        let mut admitted = 0;
        loop {
            match listener.accept().await {
                Ok((socket, from)) => {
                    self.admit(Arc::new(socket), from, listener, reception);
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

    fn admit(&self, socket: Arc<Socket>, from: ClientAddress, listener: &Listener, reception: &Reception) {
        if let Err(crowded) = self.peers.make_room(from) {
            return self.refuse(socket, from, listener, crowded);
        }
        let peer = self.peers.connecting(Arc::clone(&socket), from);
        let (connected, open) = (peer.connected(), self.open.clone());
        let accepted = self.accepted(socket, peer, self.patience, listener);
        let (reception, closing) = (reception.clone(), self.closing.clone());
        tokio::spawn(async move {
            connection::serve(accepted, reception, closing).await;
            drop((connected, open));
        });
    }

    /// Says that there are too many, unless too many are told so.
    fn refuse(&self, socket: Arc<Socket>, from: ClientAddress, listener: &Listener, crowded: Crowded) {
        if self.warned.is_due(crowded.code()).is_some() {
            tracing::warn!("connections are refused: {crowded}");
        }
        let Ok(place) = Arc::clone(&self.refusing).try_acquire_owned() else { return };
        let peer = self.peers.connecting(Arc::clone(&socket), from);
        let patience = Patience { idle: REFUSED_WITHIN, ..self.patience };
        let accepted = self.accepted(socket, peer, patience, listener);
        let refusal = listener.refusal;
        tokio::spawn(async move {
            let refusing = connection::refuse(accepted, || refusal(crowded));
            let _ = tokio::time::timeout(REFUSED_WITHIN, refusing).await;
            drop(place);
        });
    }

    fn accepted(
        &self,
        socket: Arc<Socket>,
        peer: Arc<Peer>,
        patience: Patience,
        listener: &Listener,
    ) -> Accepted {
        let (tls, access) = (listener.tls.clone(), listener.access.clone());
        Accepted { socket, peer, patience, tls, access, warned: Arc::clone(&self.warned) }
    }
}

fn refusal(crowded: Crowded) -> Response {
    Rejection(Problem::later(crowded.code(), crowded)).into_response()
}

/// What every connection over TCP has.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBED_AFTER));
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
    socket.listen(BACKLOG.into())
}

/// Whether it was no fault of the listener's.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};

    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
