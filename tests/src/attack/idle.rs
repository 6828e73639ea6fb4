use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Builder;

/// A server in this process that answers a byte with a byte: it takes as long as the machine makes everybody wait.
pub(super) struct Idle(SocketAddr);

impl Idle {
    /// Starts one, on a thread that ends with the process.
    pub(super) fn start() -> Idle {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("its address");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = stream.and_then(|mut stream| {
                    let mut byte = [0];
                    io::Read::read_exact(&mut stream, &mut byte)?;
                    io::Write::write_all(&mut stream, &byte)
                });
            }
        });
        Idle(address)
    }

    pub(super) async fn ask(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.0).await?;
        stream.write_all(&[0]).await?;
        stream.read_exact(&mut [0]).await.map(drop)
    }
}

/// Does asynchronous work on the thread that calls, and nothing else there.
pub(super) fn alone<T>(work: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}
