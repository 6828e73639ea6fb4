use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;
use delayline_tokio::Span;

use crate::failure::Failure;
use crate::service::peers::{PeerLimits, Peers};
use crate::service::proxies::{Proxies, ProxyHeader, TrustedProxy};
use crate::service::rate::{RateLimit, RateLimitError};

/// The most connections, whatever the number of descriptors: each takes some 20 KiB.
const CONNECTIONS_MAX: usize = 16_384;
/// Descriptors that are for other things: Redis, files, and telling clients that there is no room.
const DESCRIPTORS_KEPT: usize = 128;

/// What clients may ask of the service at once, and how long it waits for them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// The most connections at once; unless given, what file descriptors allow, and at most 16384
    #[arg(long, value_name = "N", env = "DELAYLINE_MAX_CONNECTIONS")]
    max_connections: Option<usize>,
    /// The most connections of one IP address, except those of a trusted proxy; as many as there may be unless given
    #[arg(long, value_name = "N", env = "DELAYLINE_MAX_CONNECTIONS_PER_CLIENT")]
    max_connections_per_client: Option<usize>,
    /// The most takes of one IP address that wait at once, and at most half of the connections; behind a proxy that is not
    /// trusted all clients have one address
    #[arg(long, value_name = "N", default_value = "1024", env = "DELAYLINE_MAX_TAKES_PER_CLIENT")]
    max_takes_per_client: usize,
    /// The most requests of one IP address in a second, as in 100/s or "100/s burst 500"
    #[arg(long, value_name = "RATE", env = "DELAYLINE_CLIENT_REQUESTS")]
    client_requests: Option<RateLimit>,
    /// The most bytes of bodies from one IP address in a second, as in 1MiB/s or "1MiB/s burst 16MiB"
    #[arg(long, value_name = "RATE", env = "DELAYLINE_CLIENT_BODY_BYTES")]
    client_body_bytes: Option<ByteRateLimit>,
    /// A proxy that is believed to say for which address it asks: an IP address, a CIDR, or unix for the Unix socket; more
    /// with commas
    #[arg(long, value_name = "CIDR", value_delimiter = ',', env = "DELAYLINE_TRUSTED_PROXY")]
    trusted_proxy: Vec<TrustedProxy>,
    /// The header by which trusted proxies say it: the one that they set themselves, whatever their clients send
    #[arg(
        long,
        value_name = "HEADER",
        value_enum,
        default_value = "x-forwarded-for",
        env = "DELAYLINE_PROXY_HEADER"
    )]
    proxy_header: ProxyHeader,
    /// The most bytes of bodies in memory, of all requests together
    #[arg(long, value_name = "SIZE", default_value = "192MiB", env = "DELAYLINE_MAX_BODY_MEMORY")]
    max_body_memory: ByteSize,
    /// The most bytes of jobs in memory, where there is no Redis
    #[arg(long, value_name = "SIZE", default_value = "256MiB", env = "DELAYLINE_MAX_MEMORY")]
    max_memory: ByteSize,
    /// How long the head of a request may take, from its first byte
    #[arg(long, value_name = "TIME", default_value = "10s", env = "DELAYLINE_HEAD_TIMEOUT")]
    head_timeout: Span,
    /// How long a body may make no progress, of a request or of an answer
    #[arg(long, value_name = "TIME", default_value = "10s", env = "DELAYLINE_BODY_TIMEOUT")]
    body_timeout: Span,
    /// The fewest bytes a second of a body, once it has been waited for as long as --body-timeout; 0 for any
    #[arg(long, value_name = "RATE", default_value = "1KiB/s", env = "DELAYLINE_MIN_BODY_RATE")]
    min_body_rate: MinBodyRate,
    /// How long a connection may be without a request; longer than a proxy in front keeps its own
    #[arg(long, value_name = "TIME", default_value = "75s", env = "DELAYLINE_IDLE_TIMEOUT")]
    idle_timeout: Span,
    /// A name by which clients may address the service, beside the one it listens on; more with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "DELAYLINE_HOST")]
    host: Vec<String>,
}

/// How long clients are waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For the rest of a request's head.
    pub(crate) header: Duration,
    /// For any byte of a body, or for room to write any.
    pub(crate) body: Duration,
    /// The fewest bytes of a body that a second of waiting is worth, once `body` is over; 0 for any.
    pub(crate) min_body_rate: u32,
    /// For a request.
    pub(crate) idle: Duration,
}

/// A rate limit of bytes, written with units: `1MiB/s burst 16MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRateLimit(RateLimit);

/// Bytes a second, written with units: `1KiB/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinBodyRate(u32);

impl FromStr for ByteRateLimit {
    type Err = RateLimitError;

    fn from_str(text: &str) -> Result<ByteRateLimit, RateLimitError> {
        RateLimit::parse(text, bytes).map(ByteRateLimit)
    }
}

impl FromStr for MinBodyRate {
    type Err = String;

    fn from_str(text: &str) -> Result<MinBodyRate, String> {
        let rate = text.strip_suffix("/s").filter(|_| text != "0/s").or((text == "0").then_some("0"));
        let rate = rate.and_then(bytes).and_then(|bytes| u32::try_from(bytes).ok());
        rate.map(MinBodyRate).ok_or_else(|| {
            let text: String = text.chars().take(80).collect();
            format!("{text:?} is no rate of bodies: write so many bytes a second, as in 1KiB/s, or 0")
        })
    }
}

fn bytes(text: &str) -> Option<u64> {
    text.trim().parse::<ByteSize>().ok().map(|size| size.as_u64())
}

impl Default for Patience {
    fn default() -> Patience {
        let (header, body) = (Duration::from_secs(10), Duration::from_secs(10));
        Patience { header, body, min_body_rate: 1 << 10, idle: Duration::from_secs(75) }
    }
}

impl Limits {
    pub(crate) fn patience(&self) -> Patience {
        let of = |span: Span| Duration::from_millis(span.0);
        Patience {
            header: of(self.head_timeout),
            body: of(self.body_timeout),
            min_body_rate: self.min_body_rate.0,
            idle: of(self.idle_timeout),
        }
    }

    /// Checks what the command line does not.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        let refused = |option: &str, what: &str| Err(Failure::Usage(format!("--{option} must be {what}")));
        let times = [
            ("head-timeout", self.head_timeout),
            ("body-timeout", self.body_timeout),
            ("idle-timeout", self.idle_timeout),
        ];
        for (option, time) in times {
            if !(100..=86_400_000).contains(&time.0) {
                return refused(option, "100ms to 1d");
            }
        }
        for (option, size) in [("max-body-memory", self.max_body_memory), ("max-memory", self.max_memory)] {
            if size.as_u64() < 1 << 20 {
                return refused(option, "1MiB at least");
            }
        }
        for (option, most) in [
            ("max-connections", self.max_connections),
            ("max-connections-per-client", self.max_connections_per_client),
        ] {
            if most == Some(0) {
                return refused(option, "1 at least");
            }
        }
        Ok(())
    }

    /// What is shared by connections within these limits.
    pub(crate) fn peers(&self) -> Arc<Peers> {
        let body_memory = usize::try_from(self.max_body_memory.as_u64()).unwrap_or(usize::MAX);
        let connections = max_connections(self.max_connections);
        // The takes of one client, which no other can make way for, leave half of the connections to others.
        let takes = self.max_takes_per_client.min((connections / 2).max(1));
        Peers::new(PeerLimits {
            max_connections: connections,
            max_connections_per_client: self.max_connections_per_client,
            max_body_memory: body_memory,
            max_takes_per_client: takes,
            requests: self.client_requests,
            body_bytes: self.client_body_bytes.map(|ByteRateLimit(limit)| limit),
            proxies: Proxies::new(self.trusted_proxy.clone(), self.proxy_header),
        })
    }

    pub(crate) fn max_memory(&self) -> usize {
        usize::try_from(self.max_memory.as_u64()).unwrap_or(usize::MAX)
    }

    pub(crate) fn hosts(&self) -> &[String] {
        &self.host
    }
}

/// How many connections there may be: as many as wanted, or what descriptors allow, of which this process gets as many as
/// it may.
pub(crate) fn max_connections(wanted: Option<usize>) -> usize {
    let left = raise_descriptors().map(|all| all.saturating_sub(DESCRIPTORS_KEPT).max(all / 2));
    wanted.unwrap_or_else(|| left.unwrap_or(CONNECTIONS_MAX).min(CONNECTIONS_MAX))
}

/// Raises the number of files that this process may open to what it may raise it to, and answers that, if it is limited.
#[cfg(unix)]
fn raise_descriptors() -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let before = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    getrlimit(Resource::Nofile).current.map(|most| usize::try_from(most).unwrap_or(usize::MAX))
}

#[cfg(windows)]
fn raise_descriptors() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_bytes_are_written_with_units() {
        let limit = |text: &str| text.parse::<ByteRateLimit>().map(|ByteRateLimit(limit)| limit);
        assert_eq!(limit("1MiB/s burst 16MiB"), RateLimit::new(1 << 20, 16 << 20));
        assert_eq!(limit("500/s"), RateLimit::new(500, 500));
        for wrong in ["1MiB", "1MiB/s burst much", "fast/s"] {
            assert!(matches!(limit(wrong), Err(RateLimitError::Unreadable(_))), "{wrong}");
        }
        for (text, rate) in [("1KiB/s", 1 << 10), ("0", 0), ("300/s", 300)] {
            assert_eq!(text.parse(), Ok(MinBodyRate(rate)));
        }
        for wrong in ["", "1KiB", "-1/s", "8GiB/s", "0/s"] {
            assert!(wrong.parse::<MinBodyRate>().is_err(), "{wrong}");
        }
    }
}
