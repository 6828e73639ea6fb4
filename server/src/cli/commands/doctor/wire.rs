use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use delayline_tokio::UnixMicros;
use delayline_tokio::redis::aio::MultiplexedConnection;
use delayline_tokio::redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo, RedisError, cmd,
};
use delayline_tokio::tuned;

use super::finding::Finding;

const PATIENCE: Duration = Duration::from_secs(2);
const PINGS: usize = 20;
const SLOW: Duration = Duration::from_millis(50);
const SKEW: Duration = Duration::from_secs(1);

/// A plain connection to Redis, to ask what the driver does not.
pub(super) struct Wire {
    connection: MultiplexedConnection,
    address: String,
}

impl Wire {
    pub(super) async fn connect(url: &str) -> Result<Wire, String> {
        let client = url.into_connection_info().and_then(|info| Client::open(tuned(info)));
        let client = client.map_err(|error| reason(&error))?;
        let address = client.get_connection_info().addr().to_string();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        let connection = connecting.await.map_err(|error| reason(&error))?;
        let mut wire = Wire { connection, address };
        match wire.ask::<()>(&cmd("PING")).await {
            Err(why) if !is_denied(&why) => Err(why),
            _ => Ok(wire),
        }
    }

    /// What is answered, or why nothing is.
    pub(super) async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, String> {
        command.query_async(&mut self.connection).await.map_err(|error| reason(&error))
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The server's clock.
    pub(super) async fn now(&mut self) -> Result<UnixMicros, String> {
        let (seconds, micros): (u64, u64) = self.ask(&cmd("TIME")).await?;
        Ok(UnixMicros(seconds.saturating_mul(1_000_000).saturating_add(micros)))
    }

    /// How far the clocks of Redis and of this machine are apart.
    pub(super) async fn clock(&mut self) -> Finding {
        const CHECK: &str = "clock";
        let (before, begun) = (SystemTime::now(), Instant::now());
        let there = match self.now().await {
            Ok(now) => Duration::from_micros(now.0),
            Err(why) => return Finding::warning(CHECK, format!("TIME: {why}"), "allow TIME: +time"),
        };
        let here = before.duration_since(UNIX_EPOCH).unwrap_or_default() + begun.elapsed() / 2;
        let apart = here.abs_diff(there);
        let detail = format!("{} ms between here and Redis", apart.as_millis());
        if apart < SKEW {
            return Finding::ok(CHECK, detail);
        }
        let mend = "Redis's clock decides when a job is due: set both by NTP, or use --delay instead of --at";
        Finding::warning(CHECK, detail, mend)
    }

    /// How long a round trip takes.
    pub(super) async fn latency(&mut self) -> Finding {
        const CHECK: &str = "latency";
        let mut times = Vec::with_capacity(PINGS);
        for _ in 0..PINGS {
            let begun = Instant::now();
            if let Err(why) = self.ask::<()>(&cmd("PING")).await {
                if is_denied(&why) {
                    return Finding::warning(CHECK, format!("PING: {why}"), "allow PING: +ping");
                }
                return Finding::error(
                    CHECK,
                    format!("PING: {why}"),
                    "look at the network between here and Redis",
                );
            }
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let median = times.get(PINGS / 2);
        let detail = format!(
            "{PINGS} pings took {:.2} ms at least, {:.2} ms in the middle, {:.2} ms at most",
            ms(times.first()),
            ms(median),
            ms(times.last())
        );
        if median.is_some_and(|median| *median < SLOW) {
            return Finding::ok(CHECK, detail);
        }
        Finding::warning(
            CHECK,
            detail,
            "a job starts about two round trips after it is due: come closer to Redis",
        )
    }
}

/// That there is no connection: `said` names the address, `why` is what this connection met.
pub(super) fn unreachable(said: &str, why: &str) -> Finding {
    let denied = ["WRONGPASS", "NOAUTH", "authentication"].iter().any(|word| why.contains(word));
    let mend = if denied {
        "give user and password in the URL: redis://user:password@host/"
    } else {
        "start Redis there, or say with --redis or DELAYLINE_REDIS_URL where it is"
    };
    let detail = if denied { why } else { said };
    Finding::error("reachable", detail, mend)
}

/// Whether the server does not let this user do that.
pub(super) fn is_denied(why: &str) -> bool {
    why.contains("NOPERM") || why.contains("no permissions")
}

/// What a server or the library says, without what it may quote of the URL.
fn reason(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (_, Some(detail)) => detail.to_string(),
        _ => error.to_string(),
    }
}
