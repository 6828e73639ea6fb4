use std::io;
use std::process::exit;

/// What a shell answers for a process that ctrl-c ended.
const INTERRUPTED: i32 = 130;

/// Listens for SIGTERM and ctrl-c from now on; the future ends when the process is told to stop. Told a second time, it
/// ends at once: leases bring back what it held.
pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut signals = Signals::listen()?;
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            exit(INTERRUPTED);
        });
    })
}

#[cfg(unix)]
struct Signals {
    interrupted: tokio::signal::unix::Signal,
    terminated: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Signals {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
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

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
