use std::fmt;

use delayline_core::wire::{Args, Dialect, Form};
use delayline_core::{Command, Head, Keyspace, Transmit, UnixMicros, armour};
use thiserror::Error;

/// Where a Redis speaks HTTP, and what proves that one may.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    pipeline: String,
    authorization: String,
}

/// An address or a token that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EndpointError {
    /// It is no URL of HTTP.
    #[error(
        "{0:?} is no address of a REST endpoint: write https://NAME.upstash.io, or http://127.0.0.1:8079"
    )]
    Url(String),
    /// It is empty, or cannot be in a header. It is not repeated.
    #[error(
        "the token of the REST endpoint is empty or has characters that a header cannot carry: copy it whole"
    )]
    Token,
}

/// One HTTP request, to be sent by `POST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Where to.
    pub url: &'a str,
    /// Name and value of each header.
    pub headers: [(&'static str, &'a str); 3],
    /// The JSON to send.
    pub body: Vec<u8>,
}

impl Endpoint {
    /// The endpoint at `url`, which may end in a slash, with its token.
    pub fn new(url: &str, token: &str) -> Result<Endpoint, EndpointError> {
        let base = url.trim().trim_end_matches('/');
        let host = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
        if host.is_none_or(|host| host.is_empty() || host.contains(char::is_whitespace)) {
            return Err(EndpointError::Url(url.chars().take(80).collect()));
        }
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(EndpointError::Token);
        }
        Ok(Endpoint { pipeline: format!("{base}/pipeline"), authorization: format!("Bearer {token}") })
    }

    /// Where requests go.
    pub fn url(&self) -> &str {
        &self.pipeline
    }

    /// What carries a transmit; its answer is for [`land`](super::land).
    pub fn request(&self, dialect: impl Dialect, keys: &Keyspace, transmit: &Transmit<'_>) -> Request<'_> {
        let commands = transmit.commands.iter().zip(transmit.forms.iter().copied());
        Request {
            url: &self.pipeline,
            headers: [
                ("authorization", &self.authorization),
                ("content-type", "application/json"),
                ("upstash-encoding", "base64"),
            ],
            body: pipeline(dialect, keys, commands, None),
        }
    }
}

/// The JSON that carries commands to `/pipeline`. `clock` replaces the server's clock in tests.
pub fn pipeline<'a>(
    dialect: impl Dialect,
    keys: &Keyspace,
    commands: impl Iterator<Item = (&'a Command, Form)> + Clone,
    clock: Option<UnixMicros>,
) -> Vec<u8> {
    let bytes: usize = commands.clone().map(|(command, _)| 1_024 + 2 * command.bytes()).sum();
    let mut words = Words { json: Vec::with_capacity(bytes), at_start: true };
    words.json.push(b'[');
    for (command, form) in commands {
        words.open();
        dialect.encode(keys, command, form, clock, &mut words);
        words.close();
    }
    words.json.push(b']');
    words.json
}

/// A record as JSON carries it: armoured. What is none, and no text either, loses what is no text.
pub fn carried(record: &[u8]) -> String {
    let head = Head::decode(record).map_or(0, |head| head.len());
    let (head, rest) = record.split_at(head.min(record.len()));
    armour(head, rest).unwrap_or_else(|_| String::from_utf8_lossy(record).into_owned())
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("pipeline", &self.pipeline).finish_non_exhaustive()
    }
}

struct Words {
    json: Vec<u8>,
    at_start: bool,
}

impl Words {
    fn open(&mut self) {
        if !self.at_start {
            self.json.push(b',');
        }
        self.json.push(b'[');
        self.at_start = true;
    }

    fn close(&mut self) {
        self.json.push(b']');
        self.at_start = false;
    }

    fn text(&mut self, text: &str) {
        if !self.at_start {
            self.json.push(b',');
        }
        self.at_start = false;
        let written = serde_json::to_writer(&mut self.json, text);
        debug_assert!(written.is_ok(), "memory takes any text");
    }
}

impl Args for Words {
    fn arg(&mut self, bytes: &[u8]) {
        self.text(&String::from_utf8_lossy(bytes));
    }

    fn record(&mut self, record: &[u8]) {
        self.text(&carried(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::wire::All;
    use delayline_core::{
        Config, Credit, Engine, Identity, JobId, Millis, NewJob, Prefix, Record, Shards, Token,
    };

    #[test]
    fn an_endpoint_is_a_url_and_a_token_that_is_not_shown() {
        let endpoint = Endpoint::new("https://eu1-x.upstash.io/", " AXX_= ").unwrap();
        assert_eq!(endpoint, Endpoint::new("https://eu1-x.upstash.io", "AXX_=").unwrap());
        assert_eq!(
            format!("{endpoint:?}"),
            r#"Endpoint { pipeline: "https://eu1-x.upstash.io/pipeline", .. }"#
        );
        for url in ["", "eu1-x.upstash.io", "redis://x", "https://", "https://a b"] {
            assert!(matches!(Endpoint::new(url, "t"), Err(EndpointError::Url(_))), "{url}");
        }
        for token in ["", " ", "a b", "a\r\nx: y", "é"] {
            assert_eq!(Endpoint::new("https://x", token), Err(EndpointError::Token), "{token:?}");
        }
    }

    #[test]
    fn a_transmit_is_one_pipeline_and_its_records_are_text() {
        let body: Vec<u8> = (0..=255).collect();
        let mut engine = Engine::new(Config::default(), Identity(7), Millis(0)).unwrap();
        for (token, id) in ["a", "b"].into_iter().enumerate() {
            let id: JobId = id.parse().unwrap();
            let job = NewJob::new("orders".parse().unwrap(), id, body.clone().into());
            engine.publish(Millis(0), Token(token as u64), job).unwrap();
        }
        let keys = Keyspace::new(&Prefix::default(), Shards::default());
        let transmit = engine.poll_transmit(Credit::UNLIMITED).unwrap();
        let endpoint = Endpoint::new("http://127.0.0.1:8079", "secret").unwrap();
        let request = endpoint.request(All, &keys, &transmit);
        assert_eq!(request.url, "http://127.0.0.1:8079/pipeline");
        assert_eq!(request.headers[0], ("authorization", "Bearer secret"));
        let commands: Vec<Vec<String>> = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(commands.len(), 1);
        let words = &commands[0];
        assert_eq!((words[0].as_str(), words[2].as_str()), ("EVALSHA", "11"));
        assert_eq!(words[3], "{dl:0.0}:agenda");
        let record = words.last().unwrap();
        assert!(record.is_ascii());
        assert_eq!(Record::decode(&record.clone().into_bytes().into(), 1 << 20).unwrap().body, body);
    }
}
