use std::io::{self, Write};
use std::sync::mpsc;

use tokio::sync::oneshot;

/// Writes to stdout on a thread of its own: a reader that stalls keeps nobody else waiting.
pub(crate) struct Printer(mpsc::Sender<Line>);

struct Line {
    bytes: Vec<u8>,
    written: oneshot::Sender<bool>,
}

impl Printer {
    pub(crate) fn start() -> io::Result<Printer> {
        let (lines, to_write) = mpsc::channel::<Line>();
        std::thread::Builder::new().name("stdout".to_owned()).spawn(move || {
            for Line { bytes, written } in to_write {
                // Who waits no longer has given the job back.
                if !written.is_closed() {
                    let mut out = io::stdout().lock();
                    let _ = written.send(out.write_all(&bytes).and_then(|()| out.flush()).is_ok());
                }
            }
        })?;
        Ok(Printer(lines))
    }

    /// Writes a line; answers whether somebody still reads.
    pub(crate) async fn print(&self, bytes: Vec<u8>) -> bool {
        let (written, is_written) = oneshot::channel();
        self.0.send(Line { bytes, written }).is_ok() && is_written.await.unwrap_or_default()
    }
}
