use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use delayline_core::wire::{self, Args, Value};
use delayline_core::{Command, Identity, Keyspace, Kind, Reply, Ticket, Transmit};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::inbox::Bell;
use crate::listener::{self, Channels};
use crate::meters;
use crate::site::{Site, Trouble};

/// How long an attempt to connect may take.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(5);
/// How long a connection may be silent while it owes an answer. Late answers are welcome to the engine until then.
const SILENCE: Duration = Duration::from_secs(10);

const FAREWELL: Duration = Duration::from_secs(1);

/// Carries round trips to the store.
pub(crate) trait Link: Send + 'static {
    /// Encodes at once, sends when polled. Answers by the ticket; dropping the future loses the round trip.
    fn send(&mut self, transmit: Transmit<'_>) -> impl Future<Output = (Ticket, Landed)> + Send + use<Self>;

    /// Notifications are wanted from now on.
    fn listen(&mut self);

    /// Notifications are wanted no longer; when this ends, all that were sent before are heard.
    fn hush(&mut self) -> impl Future<Output = ()> + Send;

    /// Makes the first attempt to connect.
    fn warm_up(&mut self) -> impl Future<Output = ()> + Send;
}

/// What became of a round trip.
pub(crate) enum Landed {
    Replies(Vec<Reply>),
    Lost,
}

/// One connection for commands, made when it is needed, one attempt at a time; pacing is the engine's.
pub(crate) struct RedisLink {
    client: redis::Client,
    keys: Arc<Keyspace>,
    line: Arc<Mutex<Line>>,
    site: Arc<Site>,
    ear: Option<(Identity, bool, Bell)>,
    hearing: Option<Hearing>,
}

/// The task that listens, and what ends it.
struct Hearing {
    hush: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The connection, and whether one is being made.
#[derive(Default)]
struct Line {
    connection: Option<MultiplexedConnection>,
    connecting: bool,
    generation: u64,
    /// After how many moves of the site the connection was made.
    moves: u64,
}

impl RedisLink {
    /// `heads` if the engine tends shards and wants to hear of earlier heads.
    pub(crate) fn new(
        client: redis::Client,
        keys: Arc<Keyspace>,
        site: Arc<Site>,
        identity: Identity,
        heads: bool,
        bell: Bell,
    ) -> RedisLink {
        let line = Arc::default();
        RedisLink { client, keys, line, site, ear: Some((identity, heads, bell)), hearing: None }
    }

    /// The connection, its generation and its moves, or `None` after an attempt to make one was begun.
    fn connection(&self) -> Option<(MultiplexedConnection, u64, u64)> {
        let mut line = lock(&self.line);
        if line.moves != self.site.moves() {
            line.connection = None;
        }
        if let Some(connection) = &line.connection {
            return Some((connection.clone(), line.generation, line.moves));
        }
        if !line.connecting {
            line.connecting = true;
            tokio::spawn(connect(self.client.clone(), self.line.clone(), self.site.clone()));
        }
        None
    }
}

impl Link for RedisLink {
    fn send(&mut self, transmit: Transmit<'_>) -> impl Future<Output = (Ticket, Landed)> + Send + use<> {
        let (ticket, kinds) = (transmit.ticket, transmit.kinds());
        let ready = self.connection().map(|found| (found, pipeline(&self.keys, &transmit)));
        let (line, site) = (self.line.clone(), self.site.clone());
        async move {
            let Some(((mut connection, generation, moves), pipeline)) = ready else {
                let why = site.absence();
                let refused = kinds.iter().map(|_| Reply::Refused(why)).collect();
                return (ticket, Landed::Replies(refused));
            };
            let since = Instant::now();
            let sent = connection.send_packed_commands(&pipeline, 0, kinds.len());
            match tokio::time::timeout(SILENCE, sent).await {
                Ok(Ok(values)) => {
                    let replies = decoded(&kinds, values);
                    site.heard(&replies, since, moves);
                    (ticket, Landed::Replies(replies))
                }
                failed => {
                    match failed {
                        Ok(ended) => {
                            tracing::debug!(why = shown(ended.err()), "lost a round trip to Redis");
                            site.broke();
                        }
                        Err(_) => site.lost(&format!("no answer for {} s", SILENCE.as_secs()), since),
                    }
                    let mut line = lock(&line);
                    if line.generation == generation {
                        line.connection = None;
                    }
                    (ticket, Landed::Lost)
                }
            }
        }
    }

    fn listen(&mut self) {
        if let Some((identity, heads, bell)) = self.ear.take() {
            let (hush, hushed) = oneshot::channel();
            let channels = Channels::new(&self.keys, identity, heads);
            let (client, site) = (self.client.clone(), self.site.clone());
            let task = tokio::spawn(listener::listen(client, channels, site, bell, hushed));
            self.hearing = Some(Hearing { hush, task });
        }
    }

    async fn hush(&mut self) {
        if let Some(Hearing { hush, task }) = self.hearing.take() {
            let _ = hush.send(());
            let _ = tokio::time::timeout(FAREWELL, task).await;
        }
    }

    async fn warm_up(&mut self) {
        lock(&self.line).connecting = true;
        connect(self.client.clone(), self.line.clone(), self.site.clone()).await;
    }
}

async fn connect(client: redis::Client, line: Arc<Mutex<Line>>, site: Arc<Site>) {
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(Some(ATTEMPT)).set_response_timeout(None);
    let (moves, since) = (site.moves(), Instant::now());
    let attempt = client.get_multiplexed_async_connection_with_config(&config).await;
    match &attempt {
        Ok(_) => site.reached(),
        Err(error) => {
            let is_denied = error.kind() == redis::ErrorKind::AuthenticationFailed;
            site.failed(Trouble { why: error.to_string(), is_denied }, since);
        }
    }
    let mut line = lock(&line);
    (line.connecting, line.moves) = (false, moves);
    if attempt.is_ok() {
        line.generation += 1;
        if line.generation > 1 {
            meters::reconnected("commands");
        }
    }
    line.connection = attempt.ok();
}

fn pipeline(keys: &Keyspace, transmit: &Transmit<'_>) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(transmit.commands.len());
    for (command, form) in transmit.commands.iter().zip(transmit.forms) {
        let mut words = Words(Cmd::with_capacity(32, size(command)));
        wire::encode(keys, command, *form, None, &mut words);
        pipeline.add_command(words.0);
    }
    pipeline
}

/// Near enough that the words of most commands fit.
fn size(command: &Command) -> usize {
    1_024 + command.bytes()
}

struct Words(Cmd);

impl Args for Words {
    fn arg(&mut self, bytes: &[u8]) {
        self.0.arg(bytes);
    }
}

fn decoded(kinds: &[Kind], values: Vec<redis::Value>) -> Vec<Reply> {
    kinds.iter().zip(values).map(|(kind, value)| wire::decode(*kind, plain(value))).collect()
}

/// A value of either protocol as the older one has it.
pub fn plain(value: redis::Value) -> Value {
    match value {
        redis::Value::Int(number) => Value::Int(number),
        redis::Value::BulkString(bytes) => Value::Bytes(Bytes::from(bytes)),
        redis::Value::SimpleString(text) | redis::Value::VerbatimString { text, .. } => {
            Value::Bytes(Bytes::from(text))
        }
        redis::Value::Okay => Value::Bytes(Bytes::from_static(b"OK")),
        redis::Value::Array(values) | redis::Value::Set(values) => {
            Value::Array(values.into_iter().map(plain).collect())
        }
        redis::Value::Map(pairs) => {
            Value::Array(pairs.into_iter().flat_map(|(key, value)| [plain(key), plain(value)]).collect())
        }
        redis::Value::Attribute { data, .. } => plain(*data),
        redis::Value::Boolean(truth) => Value::Int(truth.into()),
        redis::Value::Double(number) => Value::Bytes(Bytes::from(number.to_string())),
        redis::Value::ServerError(error) => {
            Value::Error(format!("{} {}", error.code(), error.details().unwrap_or_default()))
        }
        _ => Value::Nil,
    }
}

fn shown(error: Option<redis::RedisError>) -> String {
    error.map_or_else(|| "no answer".to_owned(), |error| error.to_string())
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_the_code_that_the_server_sent() {
        for (code, text) in [("NOSCRIPT", "No matching script"), ("OOM", "command not allowed"), ("ERR", "x")]
        {
            let parsed = redis::parse_redis_value(format!("-{code} {text}\r\n").as_bytes()).unwrap();
            assert_eq!(plain(parsed), Value::Error(format!("{code} {text}")));
        }
    }
}
