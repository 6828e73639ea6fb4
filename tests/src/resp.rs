use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use delayline_core::wire::Value;

use crate::Pipeline;

const PATIENCE: Duration = Duration::from_secs(10);

/// A blocking connection that shows what the server says, word by word.
#[derive(Debug)]
pub struct Connection {
    input: BufReader<TcpStream>,
}

impl Connection {
    /// Connects to a port of this machine.
    pub fn open(port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection { input: BufReader::new(stream) })
    }

    /// Sends a command and reads its reply.
    pub fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Value> {
        self.send(words)?;
        self.receive()
    }

    /// Sends a command and reads its reply.
    ///
    /// # Panics
    /// If the connection is lost or the reply is an error.
    pub fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Value {
        match self.call(words).expect("a living connection") {
            Value::Error(error) => panic!("{}: {error}", String::from_utf8_lossy(words[0].as_ref())),
            value => value,
        }
    }

    /// Sends a command and does not wait.
    pub fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<()> {
        let mut pipeline = Pipeline::default();
        pipeline.words(words);
        self.send_all(&mut pipeline)
    }

    /// Sends all commands of a pipeline, which is empty then, and does not wait.
    pub fn send_all(&mut self, pipeline: &mut Pipeline) -> io::Result<()> {
        self.input.get_mut().write_all(&pipeline.take())
    }

    /// Reads one reply or message.
    pub fn receive(&mut self) -> io::Result<Value> {
        let line = self.line()?;
        let (sign, text) = line.split_at_checked(1).ok_or_else(|| malformed(&line))?;
        let number = || text.parse::<i64>().map_err(|_| malformed(&line));
        Ok(match sign {
            "+" => Value::Bytes(Bytes::copy_from_slice(text.as_bytes())),
            "-" => Value::Error(text.to_string()),
            ":" => Value::Int(number()?),
            "$" => match usize::try_from(number()?) {
                Ok(len) => Value::Bytes(self.bytes(len)?),
                Err(_) => Value::Nil,
            },
            "*" => match number()? {
                -1 => Value::Nil,
                count => Value::Array((0..count).map(|_| self.receive()).collect::<io::Result<_>>()?),
            },
            _ => return Err(malformed(&line)),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn bytes(&mut self, len: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; len + 2];
        self.input.read_exact(&mut bytes)?;
        bytes.truncate(len);
        Ok(bytes.into())
    }
}

/// An array's values, or a single one.
pub fn words(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        other => vec![other],
    }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not RESP: {line:?}"))
}
