use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tower_service::Service;

use super::addresses::{Addresses, Refused};

/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Finds the addresses of a name.
pub(crate) trait Resolve: Send + Sync + 'static {
    /// The addresses, in the order in which they are to be tried.
    fn resolve(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The operating system's way.
pub(crate) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Makes connections: each finds the addresses of its host anew, leaves out those that may not be reached, and connects to
/// one of the others. Nothing looks the name up again between the check and the connection.
#[derive(Clone)]
pub(super) struct Connector {
    resolver: Arc<dyn Resolve>,
    addresses: Addresses,
    /// For the name and TCP together.
    timeout: Duration,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("{host} cannot be found: {why}")]
    Name { host: String, why: io::Error },
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error("{address} cannot be connected to: {why}")]
    Tcp { address: SocketAddr, why: io::Error },
    #[error("no connection to {host} within {} ms", .after.as_millis())]
    TimedOut { host: String, after: Duration },
}

impl Connector {
    pub(super) fn new(resolver: Arc<dyn Resolve>, addresses: Addresses, timeout: Duration) -> Connector {
        Connector { resolver, addresses, timeout }
    }

    async fn connect(self, host: String, port: u16) -> Result<TcpStream, ConnectError> {
        let end = Instant::now() + self.timeout;
        let timed_out = || ConnectError::TimedOut { host: host.clone(), after: self.timeout };
        let found = timeout_at(end, self.find(&host)).await.map_err(|_| timed_out())??;
        let mut last = ConnectError::NoAddress { host: host.clone() };
        let tried = found.len().min(ADDRESSES_MAX);
        for (n, address) in found.into_iter().take(tried).enumerate() {
            let address = SocketAddr::new(address, port);
            // One that does not answer leaves time for the others.
            let share = end.saturating_duration_since(Instant::now()) / u32::try_from(tried - n).unwrap_or(1);
            last = match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(why)) => ConnectError::Tcp { address, why },
                Err(_) => timed_out(),
            };
        }
        Err(last)
    }

    /// The addresses of a host that may be reached: if there are others only, that is a refusal.
    async fn find(&self, host: &str) -> Result<Vec<IpAddr>, ConnectError> {
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let found = if let Ok(address) = literal.parse() {
            vec![address]
        } else {
            let found = self.resolver.resolve(host).await;
            found.map_err(|why| ConnectError::Name { host: host.to_owned(), why })?
        };
        let refused = found.iter().find(|address| !self.addresses.may(**address)).copied();
        let may: Vec<IpAddr> = found.into_iter().filter(|address| self.addresses.may(*address)).collect();
        match refused {
            Some(address) if may.is_empty() => Err(Refused { host: host.to_owned(), address }.into()),
            _ => Ok(may),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let host = uri.host().unwrap_or_default().to_owned();
        let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let connecting = self.clone().connect(host, uri.port_u16().unwrap_or(usual));
        Box::pin(async move { connecting.await.map(TokioIo::new) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Answers each question with the next of these.
    struct InTurn(Mutex<Vec<Vec<IpAddr>>>);

    impl Resolve for InTurn {
        fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let mut answers = self.0.lock().unwrap();
            let answer = if answers.is_empty() { Vec::new() } else { answers.remove(0) };
            Box::pin(async move { Ok(answer) })
        }
    }

    fn connector(answers: &[&[&str]], allowed: &[&str]) -> Connector {
        let answers = answers.iter().map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect());
        let resolver = Arc::new(InTurn(Mutex::new(answers.collect())));
        let allowed: Vec<_> = allowed.iter().map(|network| network.parse().unwrap()).collect();
        Connector::new(resolver, Addresses::allowing(&allowed), Duration::from_secs(5))
    }

    async fn found(connector: &Connector, host: &str) -> Result<Vec<String>, String> {
        let found = connector.find(host).await.map_err(|error| error.to_string())?;
        Ok(found.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn a_name_that_moves_to_a_private_address_is_refused_there() {
        let connector =
            connector(&[&["93.184.216.34"], &["10.0.0.1"], &["10.0.0.1", "93.184.216.34"], &[]], &[]);
        assert_eq!(found(&connector, "a.example").await, Ok(vec!["93.184.216.34".to_owned()]));
        let refused = found(&connector, "a.example").await.unwrap_err();
        assert!(refused.contains("a.example is at 10.0.0.1, which is no public address"), "{refused}");
        assert_eq!(found(&connector, "a.example").await, Ok(vec!["93.184.216.34".to_owned()]));
        assert_eq!(found(&connector, "a.example").await, Ok(vec![]));
    }

    #[tokio::test]
    async fn an_address_in_the_url_is_checked_too() {
        let connector = connector(&[], &["::1/128"]);
        for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "169.254.169.254", "[fd00:ec2::254]"] {
            assert!(found(&connector, host).await.unwrap_err().contains("no public address"), "{host}");
        }
        assert_eq!(found(&connector, "[::1]").await, Ok(vec!["::1".to_owned()]));
    }

    #[tokio::test]
    async fn the_second_address_is_tried_when_nobody_listens_at_the_first() {
        let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connector = connector(&[&["127.0.0.3", "127.0.0.2"]], &["127.0.0.0/8"]);
        let stream = connector.connect("a.example".to_owned(), port).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
    }
}
