use std::io;
use std::path::{Path, PathBuf};

use delayline_tokio::FlightRecorder;

/// What the engine of the service was told, and the file that it is saved into.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    recorder: FlightRecorder,
    path: PathBuf,
}

impl Recording {
    /// Begins one. The file of the run before is kept beside the new one, as `.1`.
    pub(crate) fn begin(path: &Path, bytes: usize) -> io::Result<Recording> {
        let mut before = path.as_os_str().to_owned();
        before.push(".1");
        match std::fs::rename(path, before) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let recorder = FlightRecorder::new(bytes).save_on_panic(path);
        recorder.save(path)?;
        Ok(Recording { recorder, path: path.to_path_buf() })
    }

    pub(crate) fn recorder(&self) -> FlightRecorder {
        self.recorder.clone()
    }

    pub(crate) async fn save(&self) {
        let Recording { recorder, path } = self.clone();
        let saved = tokio::task::spawn_blocking(move || recorder.save(path)).await;
        let path = self.path.display();
        match saved.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
            Ok(()) => tracing::info!("what the engine was told is in {path}: delayline replay {path}"),
            Err(error) => tracing::error!(%error, "cannot save what the engine was told into {path}"),
        }
    }

    /// Saves it whenever the process is asked to, by SIGUSR1; never ends.
    #[cfg(unix)]
    pub(crate) async fn save_when_asked(&self) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};

        let mut asked = signal(SignalKind::user_defined1())?;
        while asked.recv().await.is_some() {
            self.save().await;
        }
        std::future::pending().await
    }

    #[cfg(windows)]
    pub(crate) async fn save_when_asked(&self) -> io::Result<()> {
        std::future::pending().await
    }
}
