use std::io;
use std::time::Duration;

use delayline_tokio::redis::aio::MultiplexedConnection;
use delayline_tokio::redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, IntoConnectionInfo, Pipeline, ProtocolVersion, RedisError,
    Value, cmd,
};
use delayline_tokio::{AddressError, Error};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::item::said;
use super::refusal::Refusal;
use crate::failure::Failure;

/// How long a request waits for a connection to be made.
const ATTEMPT: Duration = Duration::from_secs(2);

/// The Redis that commands go to, over one connection, which is made again when a request finds none.
pub(crate) struct Upstream {
    client: Client,
    address: String,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    connection: Option<MultiplexedConnection>,
    generation: u64,
}

impl Upstream {
    /// Connects; the first failure is final.
    pub(crate) async fn connect(url: &str) -> Result<Upstream, Failure> {
        let unusable = |_| Error::Address(AddressError::Form);
        let _ = rustls::crypto::ring::default_provider().install_default();
        let info = url.into_connection_info().map_err(unusable)?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        let client = Client::open(info.set_redis_settings(settings)).map_err(unusable)?;
        let address = client.get_connection_info().addr().to_string();
        let upstream = Upstream { client, address, line: Mutex::default() };
        upstream.connection().await.map_err(|error| upstream.not_connected(&error))?;
        Ok(upstream)
    }

    /// Where Redis is, without what is secret.
    pub(crate) fn address(&self) -> &str {
        &self.address
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
        let (mut connection, generation) = self.connection().await.map_err(|why| self.unreachable(&why))?;
        let sent = connection.send_packed_commands(&pipeline, 0, pipeline.len()).await;
        if sent.is_err() {
            let mut line = self.line.lock().await;
            if line.generation == generation {
                line.connection = None;
            }
        }
        sent.map_err(|why| Refusal::Lost { address: self.address.clone(), why: why.to_string() })
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

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), RedisError> {
        // Whoever comes while a connection is made waits for that, and no longer than if it made one itself.
        let found = timeout(ATTEMPT, async {
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
        found.await.unwrap_or_else(silent)
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
