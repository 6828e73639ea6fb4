//! What the sockets of each command to Redis are set to.

use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::process::Stdio;
use std::time::Duration;

use delayline_tokio::redis::io::tcp::socket2::SockRef;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tokio::net::TcpListener;
use tokio::process::Child;
use tokio::time::timeout;

use crate::eventually;
use crate::program::delayline;

const COMMANDS: [&[&str]; 4] = [
    &["serve", "--listen", "127.0.0.1:0"],
    &["rest", "--listen", "127.0.0.1:0", "--token", "t"],
    &["doctor"],
    &["stats", "q"],
];

#[tokio::test]
async fn every_command_sends_at_once_and_notices_a_dead_peer() {
    for words in COMMANDS {
        // One that never answers: what connects stays as it was made.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let redis = silent.local_addr().unwrap();
        let mut command = delayline(None, words);
        command.env("DELAYLINE_REDIS_URL", format!("redis://{redis}/"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let accepted = timeout(Duration::from_secs(60), silent.accept()).await;
        let (_connection, _) = accepted.unwrap_or_else(|_| panic!("{words:?} does not connect")).unwrap();
        let what = format!("{words:?} sends at once, and notices a dead peer");
        eventually(&what, async || {
            let sockets = sockets_to(redis, &child);
            (!sockets.is_empty() && sockets.iter().all(is_set)).then_some(())
        })
        .await;
    }
}

/// They are set once there is a connection.
fn is_set(socket: &OwnedFd) -> bool {
    let socket = SockRef::from(socket);
    let limit = Duration::from_secs(30);
    socket.tcp_nodelay().unwrap()
        && socket.keepalive().unwrap()
        && socket.tcp_keepalive_time().unwrap() <= limit
        && socket.tcp_user_timeout().unwrap().is_some_and(|unacknowledged| unacknowledged <= limit)
}

/// A process's sockets that are connected to this address.
fn sockets_to(peer: SocketAddr, process: &Child) -> Vec<OwnedFd> {
    let id = process.id().unwrap();
    let pid = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let numbers = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    let files = numbers.filter_map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok());
    let is_to = |file: &OwnedFd| SockRef::from(file).peer_addr().is_ok_and(|to| to.as_socket() == Some(peer));
    files.filter(is_to).collect()
}
