use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use delayline_tokio::redis::{AsyncConnectionConfig, Client, ConnectionInfo, RedisError, Value, cmd};
use tokio::time::timeout;

/// How long it may take: Redis speaks of a script that keeps it busy once that has run for 5 s.
const PATIENCE: Duration = Duration::from_secs(15);

/// Frees a Redis from a script that does not end: until it does, nobody is served.
pub(super) struct Rescue {
    client: Client,
    is_under_way: AtomicBool,
}

impl Rescue {
    pub(super) fn new(info: ConnectionInfo) -> Result<Rescue, RedisError> {
        // A database cannot be chosen while a script runs.
        let settings = info.redis_settings().clone().set_db(0);
        let client = Client::open(info.set_redis_settings(settings))?;
        Ok(Rescue { client, is_under_way: AtomicBool::new(false) })
    }

    /// Kills the script that Redis runs, if Redis says that one keeps it busy; one that has written goes on.
    pub(super) async fn attempt(self: std::sync::Arc<Rescue>) {
        if self.is_under_way.swap(true, Ordering::Relaxed) {
            return;
        }
        match timeout(PATIENCE, self.kill()).await {
            Ok(Ok(true)) => tracing::warn!("killed a script that kept Redis busy"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => tracing::error!(
                %error,
                "a script keeps Redis busy and cannot be killed: where it has written, SHUTDOWN NOSAVE alone ends it"
            ),
            Err(_) => tracing::warn!("Redis is silent: it is not known whether a script keeps it busy"),
        }
        self.is_under_way.store(false, Ordering::Relaxed);
    }

    async fn kill(&self) -> Result<bool, RedisError> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let Ok(mut redis) = self.client.get_multiplexed_async_connection_with_config(&config).await else {
            return Ok(false);
        };
        match cmd("PING").query_async::<Value>(&mut redis).await {
            Err(busy) if busy.code() == Some("BUSY") => {}
            _ => return Ok(false),
        }
        match cmd("SCRIPT").arg("KILL").query_async::<Value>(&mut redis).await {
            Err(error) if error.code() == Some("NOTBUSY") => Ok(false),
            killed => killed.map(|_| true),
        }
    }
}
