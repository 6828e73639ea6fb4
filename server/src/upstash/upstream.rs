use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use delayline_tokio::redis::aio::MultiplexedConnection;
use delayline_tokio::redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, IntoConnectionInfo, Pipeline, ProtocolVersion, RedisError,
    Value, cmd,
};
use delayline_tokio::{AddressError, Error, Span, tuned};
use tokio::sync::{Mutex, watch};
use tokio::time::{timeout, timeout_at};

use super::item::said;
use super::refusal::Refusal;
use super::rescue::Rescue;
use super::subscriptions::{Source, Subscriptions};
use crate::failure::Failure;
use crate::service::seldom::Seldom;

/// How long a request waits for a connection to be made, if it may wait so long at all.
const ATTEMPT: Duration = Duration::from_secs(2);
/// How long it waits at the start until it tries again to connect.
const AGAIN: Duration = Duration::from_millis(250);
/// What Redis says when it cannot work as it should, whoever asks.
const TROUBLES: [&str; 7] = ["LOADING", "MASTERDOWN", "MISCONF", "NOPERM", "NOREPLICAS", "OOM", "READONLY"];

/// The Redis that commands go to, over one connection, which is made again when a request finds none.
pub(crate) struct Upstream {
    client: Client,
    address: String,
    limit: Span,
    line: Mutex<Line>,
    is_away: AtomicBool,
    rescue: Arc<Rescue>,
    seldom: Seldom,
    /// How often the server was left since it had become a replica.
    moves: watch::Sender<u64>,
}

#[derive(Default)]
struct Line {
    connection: Option<MultiplexedConnection>,
    generation: u64,
}

impl Upstream {
    /// Connects, and goes on trying for `patience`; who is not let in is told at once. No request waits longer than
    /// `limit` for its answer.
    pub(crate) async fn connect(url: &str, patience: Duration, limit: Span) -> Result<Upstream, Failure> {
        let unusable = |_| Error::Address(AddressError::Form);
        let _ = rustls::crypto::ring::default_provider().install_default();
        let info = url.into_connection_info().map_err(unusable)?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        let info = tuned(info.set_redis_settings(settings));
        let rescue = Rescue::new(info.clone()).map_err(unusable)?;
        let client = Client::open(info).map_err(unusable)?;
        let address = client.get_connection_info().addr().to_string();
        let upstream = Upstream {
            client,
            address,
            limit,
            line: Mutex::default(),
            is_away: AtomicBool::new(false),
            rescue: Arc::new(rescue),
            seldom: Seldom::default(),
            moves: watch::Sender::new(0),
        };
        let begun = Instant::now();
        loop {
            let Err(error) = upstream.connection().await else { return Ok(upstream) };
            let is_final = error.kind() == ErrorKind::AuthenticationFailed;
            if is_final || begun.elapsed() >= patience {
                return Err(upstream.not_connected(&error));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Where Redis is, without what is secret.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Subscriptions to messages, so many at once.
    pub(super) fn subscriptions(&self, most: usize) -> Subscriptions {
        let source = Source {
            client: self.client.clone(),
            address: self.address.clone(),
            attempt: self.attempt(),
            limit: self.limit,
            moves: self.moves.subscribe(),
        };
        Subscriptions::new(source, most)
    }

    /// Sends commands in one piece, in their order, and returns a reply for each.
    pub(crate) async fn ask(&self, commands: impl IntoIterator<Item = Cmd>) -> Result<Vec<Value>, Refusal> {
        let mut pipeline = Pipeline::new();
        for command in commands {
            pipeline.add_command(command);
        }
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        let limit = Duration::from_millis(self.limit.0);
        let end = tokio::time::Instant::now() + limit;
        let (mut connection, generation) = self.connection().await.map_err(|why| self.unreachable(&why))?;
        let asked = connection.send_packed_commands(&pipeline, 0, pipeline.len());
        let Ok(answered) = timeout_at(end, asked).await else {
            self.hang_up(generation).await;
            tokio::spawn(Arc::clone(&self.rescue).attempt());
            return Err(Refusal::Late { address: self.address.clone(), limit: self.limit });
        };
        match answered {
            Ok(replies) => {
                self.look_at(&replies, generation).await;
                Ok(replies)
            }
            Err(why) => {
                self.hang_up(generation).await;
                self.is_lost(&why);
                Err(Refusal::Lost { address: self.address.clone(), why: why.to_string() })
            }
        }
    }

    /// Runs commands in a transaction, and returns a reply for each; if one cannot be queued, none is run.
    pub(crate) async fn transact(&self, commands: impl Iterator<Item = Cmd>) -> Result<Vec<Value>, Refusal> {
        let whole = [cmd("MULTI")].into_iter().chain(commands).chain([cmd("EXEC")]);
        let mut replies = self.ask(whole).await?;
        match replies.pop() {
            Some(Value::Array(replies)) => Ok(replies),
            executed => {
                let mut errors = replies.iter().chain(&executed).filter_map(|reply| match reply {
                    Value::ServerError(error) => Some(said(error)),
                    _ => None,
                });
                let why = errors.next().unwrap_or_else(|| "EXECABORT Transaction discarded".to_owned());
                Err(Refusal::Discarded(why))
            }
        }
    }

    /// Says what is wrong with Redis, and leaves one that has become a replica: its name may lead to another by now.
    async fn look_at(&self, replies: &[Value], generation: u64) {
        for reply in replies {
            let Value::ServerError(error) = reply else { continue };
            let Some(trouble) = TROUBLES.into_iter().find(|trouble| *trouble == error.code()) else {
                continue;
            };
            if let Some(more) = self.seldom.is_due(trouble) {
                tracing::warn!(address = self.address, why = said(error), more, "Redis refuses");
            }
            if trouble == "READONLY" && self.hang_up(generation).await {
                self.moves.send_modify(|moves| *moves += 1);
            }
        }
    }

    /// Gives the connection up, unless there is another one by now.
    async fn hang_up(&self, generation: u64) -> bool {
        let mut line = self.line.lock().await;
        line.generation == generation && line.connection.take().is_some()
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), RedisError> {
        // Whoever comes while a connection is made waits for that, and no longer than if it made one itself.
        let found = timeout(self.attempt(), async {
            let mut line = self.line.lock().await;
            if let Some(connection) = &line.connection {
                return Ok((connection.clone(), line.generation));
            }
            let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
            let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
            line.connection = Some(connection.clone());
            line.generation += 1;
            Ok((connection, line.generation))
        });
        let silent = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer").into());
        let found = found.await.unwrap_or_else(silent);
        match &found {
            Ok(_) if self.is_away.swap(false, Ordering::Relaxed) => {
                tracing::info!(address = self.address, "Redis is reached again");
            }
            Ok(_) => {}
            Err(why) => self.is_lost(why),
        }
        found
    }

    /// How long an attempt to connect may take.
    fn attempt(&self) -> Duration {
        ATTEMPT.min(Duration::from_millis(self.limit.0))
    }

    /// Says so once, until it is reached again.
    fn is_lost(&self, why: &RedisError) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(address = self.address, %why, "Redis cannot be reached: trying again until it can");
        }
    }

    fn unreachable(&self, why: &RedisError) -> Refusal {
        Refusal::Unreachable { address: self.address.clone(), why: why.to_string() }
    }

    fn not_connected(&self, error: &RedisError) -> Failure {
        let (address, why) = (self.address.clone(), error.to_string());
        if error.kind() == ErrorKind::AuthenticationFailed {
            return Error::Denied { address, why }.into();
        }
        Failure::Unreachable { address, why }
    }
}
