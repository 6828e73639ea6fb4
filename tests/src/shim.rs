//! A TCP proxy between a client and a Redis, which does to their conversation what a plan says.
//!
//! TCP neither duplicates nor reorders, and never leaves a gap: nor does the shim. Where a request or a reply is lost, all
//! that follows it on its connection is lost too, until somebody gives the connection up.

mod line;
mod plan;

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

pub use plan::{Fault, On, Plan};

use crate::Random;
use line::Line;

const PATIENCE: Duration = Duration::from_secs(5);

/// A proxy on a free port of this machine. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct Shim {
    port: u16,
    shared: Arc<Shared>,
}

/// What a shim has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Connections made through it.
    pub connections: u64,
    /// Connections closed before they carried anything.
    pub refused: u64,
    /// Calls of scripts that it has seen.
    pub commands: u64,
    /// Those that a fault befell.
    pub struck: u64,
    /// Messages to subscribers that it has swallowed.
    pub swallowed: u64,
}

#[derive(Debug)]
struct Shared {
    upstream: AtomicU16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    plan: Plan,
    random: Random,
    tally: Tally,
    /// Commands since the plan was set.
    planned: u64,
    is_frozen: bool,
    is_over: bool,
    lines: Vec<Weak<Line>>,
}

impl Shim {
    /// A proxy to this port of 127.0.0.1 that passes everything on until it is told otherwise. The seed is what
    /// [`On::Percent`] draws from.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(upstream: u16, seed: u64) -> Shim {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared {
            upstream: upstream.into(),
            state: Mutex::new(State {
                plan: Plan::default(),
                random: Random::new(seed),
                tally: Tally::default(),
                planned: 0,
                is_frozen: false,
                is_over: false,
                lines: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        let acceptor = shared.clone();
        thread::spawn(move || acceptor.accept(&listener));
        Shim { port, shared }
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address as clients write it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// What happens from now on, instead of what was planned before.
    pub fn set(&self, plan: Plan) {
        let mut state = self.shared.state();
        (state.plan, state.planned) = (plan, 0);
    }

    /// Passes everything on from now on; what was lost stays lost.
    pub fn heal(&self) {
        self.set(Plan::default());
        self.freeze(false);
    }

    /// Holds everything in both directions, on all connections, until it is told to go on: nothing is lost.
    pub fn freeze(&self, is_frozen: bool) {
        self.shared.state().is_frozen = is_frozen;
        self.shared.changed.notify_all();
    }

    /// Ends all connections, whatever they carry.
    pub fn cut_all(&self) {
        self.shared.cut(|_| true);
    }

    /// Ends the connections of subscribers.
    pub fn cut_subscriptions(&self) {
        self.shared.cut(Line::is_subscription);
    }

    /// New connections lead to the server on this port of 127.0.0.1; those there are stay.
    pub fn lead_to(&self, upstream: u16) {
        self.shared.upstream.store(upstream, Ordering::SeqCst);
    }

    /// What it has done so far.
    pub fn tally(&self) -> Tally {
        self.shared.state().tally
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.freeze(false);
        self.cut_all();
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Shared>, listener: &TcpListener) {
        for client in listener.incoming() {
            let mut state = self.state();
            if state.is_over {
                return;
            }
            let Ok(client) = client else { continue };
            let upstream = SocketAddr::from(([127, 0, 0, 1], self.upstream.load(Ordering::SeqCst)));
            let server = TcpStream::connect_timeout(&upstream, PATIENCE).ok();
            let Some(server) = server.filter(|_| !state.plan.refuse) else {
                state.tally.refused += 1;
                let _ = client.shutdown(Shutdown::Both);
                continue;
            };
            let line = Arc::new(Line::new(client, server));
            state.tally.connections += 1;
            state.lines.retain(|line| line.strong_count() > 0);
            state.lines.push(Arc::downgrade(&line));
            drop(state);
            let (other, shared) = (line.clone(), self.clone());
            thread::spawn(move || other.carry_replies(&shared));
            let shared = self.clone();
            thread::spawn(move || line.carry_requests(&shared));
        }
    }

    fn cut(&self, which: impl Fn(&Line) -> bool) {
        let lines = self.state().lines.clone();
        lines.iter().filter_map(Weak::upgrade).filter(|line| which(line)).for_each(|line| line.cut());
        self.changed.notify_all();
    }

    /// Waits while all is frozen.
    fn thaw(&self, line: &Line) {
        let frozen = |state: &mut State| state.is_frozen && !line.is_cut();
        drop(self.changed.wait_while(self.state(), frozen).unwrap_or_else(PoisonError::into_inner));
    }

    /// What befalls a call of a script, the `place`-th of those that came together.
    fn strike(&self, place: u64) -> Option<Fault> {
        let mut state = self.state();
        state.planned += 1;
        state.tally.commands += 1;
        let State { plan, random, planned, .. } = &mut *state;
        let fault = plan.strike(*planned, place, random);
        state.tally.struck += u64::from(fault.is_some());
        fault
    }

    fn swallows(&self) -> bool {
        let mut state = self.state();
        let swallows = state.plan.swallow_messages;
        state.tally.swallowed += u64::from(swallows);
        swallows
    }
}
