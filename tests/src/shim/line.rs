use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::{Fault, Shared};

const CHUNK: usize = 1 << 16;

/// A client's connection and the one to the server that belongs to it.
#[derive(Debug)]
pub(super) struct Line {
    client: TcpStream,
    server: TcpStream,
    owed: Mutex<VecDeque<Owed>>,
    is_subscription: AtomicBool,
    is_cut: AtomicBool,
}

/// What the client is to hear next.
#[derive(Clone, Copy, Debug)]
enum Owed {
    /// The server's next reply, with what befalls it.
    Reply(Option<Fault>),
    /// An error that the server knows nothing of.
    Error(&'static str),
}

impl Line {
    pub(super) fn new(client: TcpStream, server: TcpStream) -> Line {
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
        }
        let owed = Mutex::new(VecDeque::new());
        let (is_subscription, is_cut) = (AtomicBool::new(false), AtomicBool::new(false));
        Line { client, server, owed, is_subscription, is_cut }
    }

    pub(super) fn is_subscription(&self) -> bool {
        self.is_subscription.load(Ordering::SeqCst)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    pub(super) fn carry_requests(&self, shared: &Shared) {
        let mut input = Input::new(&self.client);
        let mut is_lost = false;
        while let Ok(frame) = input.frame() {
            shared.thaw(self);
            if is_lost {
                continue;
            }
            let fault = if is_script(&frame) { shared.strike(input.place) } else { None };
            if is_named(&frame, "SUBSCRIBE") {
                self.is_subscription.store(true, Ordering::SeqCst);
            }
            let carried = match fault {
                Some(Fault::CutBefore) => break,
                Some(Fault::LoseRequest) => {
                    is_lost = true;
                    Ok(())
                }
                Some(Fault::Refuse(error)) => self.refuse(error),
                fault => {
                    self.owed().push_back(Owed::Reply(fault));
                    (&self.server).write_all(&frame)
                }
            };
            if carried.is_err() {
                break;
            }
        }
        self.cut();
    }

    pub(super) fn carry_replies(&self, shared: &Shared) {
        let mut input = Input::new(&self.server);
        let mut is_lost = false;
        while let Ok(frame) = input.frame() {
            shared.thaw(self);
            let is_unheard = self.is_subscription() && is_message(&frame) && shared.swallows();
            if is_lost || is_unheard {
                continue;
            }
            let next = self.owed().front().copied();
            let fault = match next {
                Some(Owed::Reply(fault)) => fault,
                _ => None,
            };
            is_lost = matches!(fault, Some(Fault::LoseReply | Fault::Half));
            if self.answer(&frame, fault).and_then(|()| self.go_on()).is_err() {
                break;
            }
        }
        self.cut();
    }

    fn owed(&self) -> MutexGuard<'_, VecDeque<Owed>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, frame: &[u8], fault: Option<Fault>) -> io::Result<()> {
        let mut client = &self.client;
        let half = &frame[..frame.len() / 2];
        match fault {
            Some(Fault::LoseReply) => Ok(()),
            Some(Fault::CutAfter) => Err(io::ErrorKind::ConnectionAborted.into()),
            Some(Fault::CutWithin) => {
                client.write_all(half)?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Some(Fault::Half) => client.write_all(half),
            Some(Fault::Answer(bytes)) => client.write_all(bytes),
            Some(Fault::Delay(time)) => {
                thread::sleep(time);
                client.write_all(frame)
            }
            _ => client.write_all(frame),
        }
    }

    /// An error takes its turn among the replies that are still to come.
    fn refuse(&self, error: &'static str) -> io::Result<()> {
        let mut owed = self.owed();
        if owed.is_empty() {
            return write_error(&self.client, error);
        }
        owed.push_back(Owed::Error(error));
        Ok(())
    }

    /// The reply at the head is done with: so are the errors behind it.
    fn go_on(&self) -> io::Result<()> {
        let mut owed = self.owed();
        owed.pop_front();
        while let Some(Owed::Error(error)) = owed.front() {
            write_error(&self.client, error)?;
            owed.pop_front();
        }
        Ok(())
    }
}

fn write_error(mut client: &TcpStream, error: &str) -> io::Result<()> {
    client.write_all(format!("-{error}\r\n").as_bytes())
}

/// A stream cut into requests or replies.
struct Input<'a> {
    stream: &'a TcpStream,
    read: Vec<u8>,
    /// Which of those that arrived together the last one was.
    place: u64,
}

impl Input<'_> {
    fn new(stream: &TcpStream) -> Input<'_> {
        Input { stream, read: Vec::new(), place: 0 }
    }

    fn frame(&mut self) -> io::Result<Vec<u8>> {
        if self.read.is_empty() {
            self.place = 0;
        }
        loop {
            if let Some(end) = end_of_frame(&self.read)? {
                self.place += 1;
                let rest = self.read.split_off(end);
                return Ok(std::mem::replace(&mut self.read, rest));
            }
            let from = self.read.len();
            self.read.resize(from + CHUNK, 0);
            let count = self.stream.read(&mut self.read[from..]).unwrap_or(0);
            self.read.truncate(from + count);
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Where the first request or reply ends, if all of it is there.
fn end_of_frame(bytes: &[u8]) -> io::Result<Option<usize>> {
    let (mut at, mut missing) = (0, 1);
    while missing > 0 {
        let Some(len) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let (sign, text) = (bytes[at], &bytes[at + 1..at + len]);
        let number = || str::from_utf8(text).ok()?.parse::<i64>().ok();
        let count = || number().map(|number| usize::try_from(number).unwrap_or(0));
        at += len + 2;
        missing -= 1;
        match sign {
            b'$' if text != b"-1" => at += count().ok_or(io::ErrorKind::InvalidData)? + 2,
            b'*' | b'>' | b'~' => missing += count().ok_or(io::ErrorKind::InvalidData)?,
            b'%' => missing += 2 * count().ok_or(io::ErrorKind::InvalidData)?,
            _ => {}
        }
        if at > bytes.len() || (at == bytes.len() && missing > 0) {
            return Ok(None);
        }
    }
    Ok(Some(at))
}

fn is_script(request: &[u8]) -> bool {
    is_named(request, "EVALSHA") || is_named(request, "EVAL")
}

fn is_message(reply: &[u8]) -> bool {
    is_named(reply, "message")
}

/// Whether the first word of an array is this one.
fn is_named(frame: &[u8], name: &str) -> bool {
    let mut words = frame.split(|byte| *byte == b'\n').skip(2);
    words.next().is_some_and(|word| {
        word.strip_suffix(b"\r").is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_ends_where_all_it_announces_is_there() {
        for whole in
            ["+OK\r\n", "$-1\r\n", "$2\r\n\r\n\r\n", "*-1\r\n", "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", "*0\r\n"]
        {
            for cut in 0..whole.len() {
                assert_eq!(end_of_frame(&whole.as_bytes()[..cut]).unwrap(), None, "{whole:?} to {cut}");
            }
            let more = [whole, "+next"].concat();
            assert_eq!(end_of_frame(more.as_bytes()).unwrap(), Some(whole.len()), "{whole:?}");
        }
    }
}
