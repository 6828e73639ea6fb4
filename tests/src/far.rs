use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A server that is far away: a proxy on a free port of this machine that delays all bytes by the same time, each way,
/// in their order, however many are under way.
#[derive(Debug)]
pub struct Far {
    port: u16,
}

impl Far {
    /// The server on `upstream`, so far away.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(upstream: u16, each_way: Duration) -> Far {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], upstream)));
                if let Ok(server) = server {
                    carry_both(&client, &server, each_way);
                }
            }
        });
        Far { port }
    }

    /// The address as clients write it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

fn carry_both(client: &TcpStream, server: &TcpStream, each_way: Duration) {
    for (from, to) in [(client, server), (server, client)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { return };
        let _ = to.set_nodelay(true);
        let (under_way, arriving) = channel();
        thread::spawn(move || take(from, &under_way, each_way));
        thread::spawn(move || hand_over(to, &arriving));
    }
}

fn take(mut from: TcpStream, under_way: &Sender<(Instant, Vec<u8>)>, each_way: Duration) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let arrival = Instant::now() + each_way;
        if under_way.send((arrival, bytes[..count].to_vec())).is_err() {
            return;
        }
    }
}

fn hand_over(mut to: TcpStream, arriving: &Receiver<(Instant, Vec<u8>)>) {
    for (arrival, bytes) in arriving {
        thread::sleep(arrival.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
