use std::io;

use tokio::sync::watch;

/// How often the process was told to stop, by SIGTERM or ctrl-c.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<u32>);

impl Stop {
    /// Listens from now on.
    pub(crate) fn listen() -> io::Result<Stop> {
        let mut signals = Signals::listen()?;
        let (told, stop) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                signals.next().await;
                told.send_modify(|told| *told += 1);
            }
        });
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
