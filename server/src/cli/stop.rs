use std::io;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;

/// How long a process that was told twice to stop may take, whatever it waits for.
const LAST_RESORT: Duration = Duration::from_secs(1);
/// The exit code of whoever was told to stop before it was done, as a shell says it of whatever ctrl-c has ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// How often the process was told to stop, by SIGTERM or ctrl-c.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<u32>);

/// What a signal asks for.
enum Heard {
    /// To finish.
    Stop(&'static str),
    /// Nothing that this process does: why not.
    Nothing(&'static str, &'static str),
}

impl Stop {
    /// Listens from now on, on a thread of its own: who is told twice to stop ends though every other thread is stuck, as
    /// in a write that nobody reads.
    pub(crate) fn listen() -> io::Result<Stop> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let mut signals = {
            let _within = runtime.enter();
            Signals::listen()?
        };
        let (told, stop) = watch::channel(0);
        let listen = async move {
            loop {
                match signals.next().await {
                    Heard::Stop(signal) if *told.borrow() == 0 => {
                        tracing::info!("{signal}: stopping");
                        told.send_replace(1);
                    }
                    Heard::Stop(signal) => {
                        tracing::warn!("{signal} again: stopping at once");
                        told.send_replace(2);
                        tokio::time::sleep(LAST_RESORT).await;
                        std::process::exit(INTERRUPTED.into());
                    }
                    Heard::Nothing(signal, why) => tracing::info!("{signal}: {why}"),
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
        Ok(Stop(stop))
    }

    /// Ends when the process is told to finish.
    pub(crate) async fn asked(self) {
        self.told(1).await;
    }

    /// Whether the process was told to finish.
    pub(crate) fn was_asked(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Ends when the process is told again: not to wait for what it has begun.
    pub(crate) async fn insisted(self) {
        self.told(2).await;
    }

    async fn told(mut self, times: u32) {
        if self.0.wait_for(|told| *told >= times).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupted: tokio::signal::unix::Signal,
    terminated: tokio::signal::unix::Signal,
    hung_up: tokio::signal::unix::Signal,
    user_defined1: tokio::signal::unix::Signal,
    user_defined2: tokio::signal::unix::Signal,
    /// Whether it was started at a terminal, which it is to end with.
    is_at_terminal: bool,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Signals> {
        use std::io::IsTerminal;
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Signals {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            user_defined1: signal(SignalKind::user_defined1())?,
            user_defined2: signal(SignalKind::user_defined2())?,
            is_at_terminal: io::stdin().is_terminal() || io::stderr().is_terminal(),
        })
    }

    async fn next(&mut self) -> Heard {
        tokio::select! {
            _ = self.interrupted.recv() => Heard::Stop("SIGINT"),
            _ = self.terminated.recv() => Heard::Stop("SIGTERM"),
            _ = self.hung_up.recv() => if self.is_at_terminal {
                Heard::Stop("SIGHUP")
            } else {
                Heard::Nothing("SIGHUP", "certificates are read again where there is TLS; settings are read at the start only")
            },
            _ = self.user_defined1.recv() => {
                Heard::Nothing("SIGUSR1", "it saves what `serve --flight-recorder` has recorded, nothing else")
            }
            _ = self.user_defined2.recv() => Heard::Nothing("SIGUSR2", "it means nothing here, going on"),
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn listen() -> io::Result<Signals> {
        tokio::signal::windows::ctrl_c().map(Signals)
    }

    async fn next(&mut self) -> Heard {
        self.0.recv().await;
        Heard::Stop("ctrl-c")
    }
}
