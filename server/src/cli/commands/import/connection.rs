use std::time::Duration;

use delayline_tokio::redis::aio::MultiplexedConnection;
use delayline_tokio::redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo, Pipeline, RedisError,
};
use delayline_tokio::tuned;

use crate::failure::Failure;

/// How long a connection, and each answer, is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// What the scripts here raise where another process holds the lock.
const LOCKED: &str = "IMPORTLOCKED";

/// A plain connection to a Redis, for what the driver does not do. Clones share it.
#[derive(Clone)]
pub(super) struct Connection {
    connection: MultiplexedConnection,
    address: String,
}

impl Connection {
    pub(super) async fn open(url: &str) -> Result<Connection, Failure> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = url.into_connection_info().and_then(|info| Client::open(tuned(info)));
        // What the library says of a URL may quote it.
        let client = client
            .map_err(|_| Failure::Usage("the URL of the Redis to import from cannot be used".into()))?;
        let address = client.get_connection_info().addr().to_string();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        match client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(connection) => Ok(Connection { connection, address }),
            Err(error) => Err(Failure::Unreachable { address, why: reason(&error) }),
        }
    }

    /// Host and port, or the path of a socket: nothing secret.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Failure> {
        command.query_async(&mut self.connection).await.map_err(|error| self.failure(&error))
    }

    pub(super) async fn ask_all<T: FromRedisValue>(&mut self, commands: &Pipeline) -> Result<T, Failure> {
        commands.query_async(&mut self.connection).await.map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &RedisError) -> Failure {
        let address = self.address.clone();
        if error.code() == Some(LOCKED) {
            Failure::Importing { address }
        } else {
            Failure::Redis { address, why: reason(error) }
        }
    }
}

/// What a server or the library says, without what it may quote of the URL.
fn reason(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (_, Some(detail)) => detail.to_string(),
        _ => error.to_string(),
    }
}
