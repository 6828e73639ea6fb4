use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How late bytes are that are [delayed](Passage::Delaying).
const DELAY: Duration = Duration::from_millis(20);

/// What a [`Proxy`] does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Carries them.
    Open,
    /// Holds them back, both ways.
    Stalled,
    /// Carries them late, both ways.
    Delaying,
    /// Carries requests and drops replies.
    Swallowing,
    /// Accepts no connection, and has cut those there were.
    Refusing,
}

/// Stands between clients and a server on ports of this machine, and knows nothing of what they say.
#[derive(Clone, Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: AtomicU16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    passage: Passage,
    /// How often all connections were cut; those of an earlier time are dead.
    cuts: u64,
    /// How often all connections went silent; those of an earlier time are, for ever.
    freezes: u64,
    connections: Vec<TcpStream>,
}

/// What had befallen the others when a connection was made.
#[derive(Clone, Copy, Debug)]
struct Born {
    cuts: u64,
    freezes: u64,
}

impl Proxy {
    /// Listens, and carries to the server on `upstream`.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(upstream: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let state =
            Mutex::new(State { passage: Passage::Open, cuts: 0, freezes: 0, connections: Vec::new() });
        let shared = Arc::new(Shared { upstream: upstream.into(), state, changed: Condvar::new() });
        let accepting = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = accepting.clone();
                thread::spawn(move || shared.serve(client));
            }
        });
        Proxy { port, shared }
    }

    /// The address of the server behind it, as clients write it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Changes what becomes of bytes. Connections whose replies were dropped cannot go on: they are cut.
    pub fn set(&self, passage: Passage) {
        let was = std::mem::replace(&mut self.shared.state().passage, passage);
        if was == Passage::Swallowing || passage == Passage::Refusing {
            self.cut();
        }
        self.shared.changed.notify_all();
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        let mut state = self.shared.state();
        state.cuts += 1;
        for connection in state.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }

    /// All connections stay open and carry nothing any more, as where packets are dropped; new ones do.
    pub fn freeze(&self) {
        self.shared.state().freezes += 1;
        self.shared.changed.notify_all();
    }

    /// New connections lead to the server on another port; those there are stay where they are.
    pub fn lead_new_to(&self, upstream: u16) {
        self.shared.upstream.store(upstream, Ordering::SeqCst);
    }

    /// Cuts all connections; new ones lead to the server on another port.
    pub fn lead_to(&self, upstream: u16) {
        self.lead_new_to(upstream);
        self.cut();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(self: Arc<Shared>, client: TcpStream) {
        let born = {
            let state = self.state();
            if state.passage == Passage::Refusing {
                return;
            }
            Born { cuts: state.cuts, freezes: state.freezes }
        };
        let address = SocketAddr::from(([127, 0, 0, 1], self.upstream.load(Ordering::SeqCst)));
        let Ok(server) = TcpStream::connect(address) else { return };
        let _ = self.carry_both(client, server, born);
    }

    fn carry_both(self: Arc<Shared>, client: TcpStream, server: TcpStream, born: Born) -> io::Result<()> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        {
            let mut state = self.state();
            if state.cuts != born.cuts {
                return Ok(());
            }
            state.connections.extend([client.try_clone()?, server.try_clone()?]);
        }
        let (shared, from, to) = (self.clone(), server.try_clone()?, client.try_clone()?);
        thread::spawn(move || shared.carry(from, to, born, true));
        self.carry(client, server, born, false);
        Ok(())
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream, born: Born, replies: bool) {
        let mut bytes = [0; 16 << 10];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            let Some(passage) = self.passage(born) else { break };
            if self.state().freezes != born.freezes {
                continue;
            }
            if passage == Passage::Delaying {
                thread::sleep(DELAY);
            }
            if (passage == Passage::Swallowing && replies) || to.write_all(&bytes[..len]).is_ok() {
                continue;
            }
            break;
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    /// What to do with bytes that have come, once they may move; `None` if their connection was cut.
    fn passage(&self, Born { cuts, .. }: Born) -> Option<Passage> {
        let stalled = |state: &mut State| state.passage == Passage::Stalled && state.cuts == cuts;
        let state = self.changed.wait_while(self.state(), stalled).unwrap_or_else(PoisonError::into_inner);
        (state.cuts == cuts).then_some(state.passage)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::until;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A server that answers every byte with the next one.
    fn server(step: u8) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut byte = [0];
                    while let Ok(1) = stream.read(&mut byte) {
                        stream.write_all(&[byte[0] + step]).expect("a listener");
                    }
                });
            }
        });
        port
    }

    fn connect(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port)).expect("the proxy listens");
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        stream
    }

    fn ask(stream: &mut TcpStream, byte: u8) -> io::Result<u8> {
        stream.write_all(&[byte])?;
        answer(stream)
    }

    fn answer(stream: &mut TcpStream) -> io::Result<u8> {
        let mut byte = [0];
        stream.read_exact(&mut byte).map(|()| byte[0])
    }

    fn is_silent(answer: io::Result<u8>) -> bool {
        answer.is_err_and(|error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
    }

    fn answers(proxy: &Proxy) -> u8 {
        until("an answer", PATIENCE, || ask(&mut connect(proxy), 1).ok())
    }

    #[test]
    fn holds_bytes_back_and_lets_them_go() {
        let proxy = Proxy::start(server(1));
        let mut stream = connect(&proxy);
        until("an answer", PATIENCE, || ask(&mut stream, 1).ok());
        proxy.set(Passage::Stalled);
        assert!(is_silent(ask(&mut stream, 5)));
        proxy.set(Passage::Open);
        until("the answer", PATIENCE, || answer(&mut stream).ok().filter(|byte| *byte == 6));
    }

    #[test]
    fn drops_replies_and_then_the_connection() {
        let proxy = Proxy::start(server(1));
        let mut stream = connect(&proxy);
        until("an answer", PATIENCE, || ask(&mut stream, 1).ok());
        proxy.set(Passage::Swallowing);
        assert!(is_silent(ask(&mut stream, 5)));
        proxy.set(Passage::Open);
        let error = until("its end", PATIENCE, || {
            answer(&mut stream).err().filter(|error| !is_silent(Err(error.kind().into())))
        });
        println!("{error}");
        assert_eq!(answers(&proxy), 2);
    }

    #[test]
    fn refuses_and_leads_elsewhere() {
        let proxy = Proxy::start(server(1));
        assert_eq!(answers(&proxy), 2);
        proxy.set(Passage::Refusing);
        until("a refusal", PATIENCE, || {
            ask(&mut connect(&proxy), 1).err().filter(|error| !is_silent(Err(error.kind().into())))
        });
        proxy.lead_to(server(2));
        proxy.set(Passage::Open);
        assert_eq!(answers(&proxy), 3);
    }

    #[test]
    fn a_frozen_connection_stays_open_and_is_silent_for_ever() {
        let proxy = Proxy::start(server(1));
        let mut stream = connect(&proxy);
        until("an answer", PATIENCE, || ask(&mut stream, 1).ok());
        proxy.freeze();
        assert!(is_silent(ask(&mut stream, 5)));
        assert_eq!(answers(&proxy), 2, "a new connection is another");
        assert!(is_silent(answer(&mut stream)));
    }

    #[test]
    fn new_connections_are_led_elsewhere_and_old_ones_stay() {
        let proxy = Proxy::start(server(1));
        let mut stream = connect(&proxy);
        until("an answer", PATIENCE, || ask(&mut stream, 1).ok());
        proxy.lead_new_to(server(2));
        assert_eq!(answers(&proxy), 3);
        let mut again = || ask(&mut stream, 1).ok();
        assert_eq!(until("an answer", PATIENCE, &mut again), 2);
    }

    #[test]
    fn bytes_that_are_delayed_arrive() {
        let proxy = Proxy::start(server(1));
        proxy.set(Passage::Delaying);
        let begun = std::time::Instant::now();
        assert_eq!(answers(&proxy), 2);
        assert!(begun.elapsed() >= 2 * DELAY, "there and back");
    }
}
