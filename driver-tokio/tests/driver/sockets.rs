//! What the sockets to Redis are set to.

use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

use delayline_tokio::redis::io::tcp::socket2::SockRef;
use delayline_tokio::{Client, Worker, redis};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::eventually;
use crate::running::{end, run};
use crate::server::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_connection_sends_at_once_and_notices_a_dead_peer() {
    let server = Server::spawn();
    let client = Client::connect(&server.url()).await.unwrap();
    let own = Client::from_redis(redis::Client::open(server.url()).unwrap()).await.unwrap();
    let queue = client.queue::<String>("mails").unwrap();
    let running = run(Worker::new(&client).queue(&queue, async || {}));
    for asking in [&client, &own] {
        let taken = asking.bytes("other").unwrap().take().wait(Duration::from_millis(100)).await.unwrap();
        assert_eq!(taken, []);
    }
    // Commands and wake-ups of two clients and a worker.
    eventually("all are connected", async || sockets_to(server.address()).len() == 6).await;
    for socket in sockets_to(server.address()) {
        let socket = SockRef::from(&socket);
        assert!(socket.tcp_nodelay().unwrap(), "small writes wait for an acknowledgement");
        assert!(socket.keepalive().unwrap(), "a peer that has gone is never noticed");
        let silence = socket.tcp_keepalive_time().unwrap();
        assert!(silence <= Duration::from_secs(30), "first asked after {silence:?}");
        let unacknowledged = socket.tcp_user_timeout().unwrap();
        assert!(unacknowledged.is_some_and(|limit| limit <= Duration::from_secs(30)), "{unacknowledged:?}");
    }
    own.close().await;
    end(client, running).await;
}

/// This process's sockets that are connected to this address.
fn sockets_to(peer: SocketAddr) -> Vec<OwnedFd> {
    let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    let files = numbers.filter_map(|number| pidfd_getfd(&this, number, PidfdGetfdFlags::empty()).ok());
    let is_to = |file: &OwnedFd| SockRef::from(file).peer_addr().is_ok_and(|to| to.as_socket() == Some(peer));
    files.filter(is_to).collect()
}
