use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::stream::{Stream, Transport};
use super::wire::Wire;
use crate::service::peers::Peer;
use crate::service::tls::Tls;

/// The first byte of a TLS connection: a record of a handshake.
const HANDSHAKE: u8 = 22;

/// What a connection turns out to be.
pub(super) enum Greeting {
    Ready(Stream),
    /// HTTP in clear text where it is to be TLS.
    NoTls(Stream),
}

/// Begins TLS on a new connection, within `patience` from when it was made; nothing if it closes before it says anything.
pub(super) async fn greet(
    wire: Wire,
    peer: Arc<Peer>,
    tls: &Tls,
    patience: Duration,
) -> io::Result<Option<Greeting>> {
    let shaking = async {
        let stream = |transport| Stream::new(transport, peer, patience);
        match wire.socket().first_byte().await? {
            None => Ok(None),
            Some(HANDSHAKE) => {
                let accepted = tls.acceptor().accept(wire).await?;
                Ok(Some(Greeting::Ready(stream(Transport::Tls(Box::new(accepted))))))
            }
            // A method begins with a capital letter.
            Some(b'A'..=b'Z') => Ok(Some(Greeting::NoTls(stream(Transport::Clear(wire))))),
            Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "it is neither TLS nor HTTP")),
        }
    };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the handshake does not come to its end");
    timeout(patience, shaking).await.map_err(late)?
}
