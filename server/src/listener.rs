use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::{TcpListener, lookup_host};
use tokio::sync::watch;

use crate::failure::Failure;

/// How long requests under way may take to end after the process was told to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// Where HTTP requests are heard.
pub(crate) struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
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
        let tcp = TcpListener::bind(&*addresses).await.map_err(refused)?;
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
        close: watch::Sender<bool>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let closing = close.subscribe();
        let listener = self.tcp.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let stopped = async move {
            stop.await;
            close.send_replace(true);
        };
        let served = axum::serve(listener, router).with_graceful_shutdown(stopped);
        tokio::select! {
            result = served.into_future() => result?,
            () = out_of_patience(closing) => tracing::warn!("requests were cut off: they took over {GRACE:?} to end"),
        }
        Ok(())
    }
}

async fn out_of_patience(mut closing: watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
    tokio::time::sleep(GRACE).await;
}
