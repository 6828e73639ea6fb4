use std::time::Duration;

use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use thiserror::Error;

/// After how much silence a peer is asked whether it is there, and how often from then on.
const SILENCE: Duration = Duration::from_secs(15);
const PROBES: Duration = Duration::from_secs(5);
/// How long what was sent, or a probe, may stay unacknowledged.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

/// A URL that cannot be used. The message never repeats the URL, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It has none of the known forms.
    #[error(
        "this is no address of a queue: write redis://[user:password@]host[:port][/database], rediss:// for TLS, \
         redis+unix:///path/to/socket, or memory://"
    )]
    Form,
    /// It asks for something unknown.
    #[error(
        "the URL's option {0:?} is unknown: use prefix, shards and protocol, and for a socket db, user and pass"
    )]
    Option(String),
    /// An option cannot have this value.
    #[error("the URL's option {name} cannot be {value:?}: {allowed}")]
    Value {
        /// Which option.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// This program was built without what the URL needs.
    #[error("{scheme}:// needs the feature {feature} of delayline-tokio: build with it")]
    Feature {
        /// What the URL begins with.
        scheme: &'static str,
        /// What is missing.
        feature: &'static str,
    },
    /// What else is wrong with it.
    #[error("the URL cannot be used: {0}")]
    Redis(String),
}

/// A URL, read.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) target: Target,
    pub(crate) prefix: Option<String>,
    pub(crate) shards: Option<u16>,
}

/// Where jobs are kept.
#[derive(Debug)]
pub(crate) enum Target {
    Redis(Box<ConnectionInfo>),
    #[cfg(feature = "memory")]
    Memory(Option<String>),
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Address, AddressError> {
        #[cfg(feature = "memory")]
        if let Some(rest) = url.strip_prefix("memory://") {
            return memory(rest);
        }
        if cfg!(not(feature = "memory")) && url.starts_with("memory://") {
            return Err(AddressError::Feature { scheme: "memory", feature: "memory" });
        }
        redis(url)
    }
}

/// How the sockets to a Redis are to be set: small writes are sent at once, and a peer that has gone is noticed, be the
/// connection silent or not. Keep-alive probes that are set already stay.
///
/// ```
/// use delayline_tokio::{redis, tuned};
///
/// let info = redis::IntoConnectionInfo::into_connection_info("redis://127.0.0.1/")?;
/// assert!(!info.tcp_settings().nodelay() && tuned(info).tcp_settings().nodelay());
/// # Ok::<(), redis::RedisError>(())
/// ```
pub fn tuned(info: ConnectionInfo) -> ConnectionInfo {
    let own = info.tcp_settings().clone().set_nodelay(true);
    let settings = match own.keepalive() {
        Some(_) => own,
        None => own.set_keepalive(TcpKeepalive::new().with_time(SILENCE).with_interval(PROBES)),
    };
    #[cfg(target_os = "linux")]
    let settings = match settings.user_timeout() {
        Some(_) => settings,
        None => settings.set_user_timeout(UNACKNOWLEDGED),
    };
    info.set_tcp_settings(settings)
}

/// Host, port and database, or the path: nothing secret.
pub(crate) fn shown(info: &ConnectionInfo) -> String {
    let db = info.redis_settings().db();
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => format!("redis://{}:{port}/{db}", bracketed(host)),
        ConnectionAddr::TcpTls { host, port, .. } => format!("rediss://{}:{port}/{db}", bracketed(host)),
        ConnectionAddr::Unix(path) => format!("redis+unix://{}?db={db}", path.display()),
        _ => "redis".to_owned(),
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(feature = "memory")]
fn memory(rest: &str) -> Result<Address, AddressError> {
    let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
    let name = name.trim_end_matches('/');
    let (mut prefix, mut shards) = (None, None);
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let mut options = Options { prefix: &mut prefix, shards: &mut shards };
        if !options.take(name, value)? {
            return Err(AddressError::Option(name.to_owned()));
        }
    }
    let name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Address { target: Target::Memory(name), prefix, shards })
}

fn redis(url: &str) -> Result<Address, AddressError> {
    let parsed = redis::parse_redis_url(url).ok_or(AddressError::Form)?;
    let socket = parsed.scheme().ends_with("unix");
    if cfg!(not(feature = "tls")) && matches!(parsed.scheme(), "rediss" | "valkeys") {
        return Err(AddressError::Feature { scheme: "rediss", feature: "tls" });
    }
    let (mut prefix, mut shards) = (None, None);
    for (name, value) in parsed.query_pairs() {
        let mut options = Options { prefix: &mut prefix, shards: &mut shards };
        let known = name == "protocol" || (socket && matches!(&*name, "db" | "user" | "pass"));
        if !known && !options.take(&name, &value)? {
            return Err(AddressError::Option(name.into_owned()));
        }
    }
    let info = parsed.into_connection_info().map_err(|error| AddressError::Redis(reason(&error)))?;
    Ok(Address { target: Target::Redis(Box::new(tuned(info))), prefix, shards })
}

/// What a library's error says without what it may quote.
fn reason(error: &redis::RedisError) -> String {
    error.detail().map_or_else(|| error.category().to_owned(), ToOwned::to_owned)
}

struct Options<'a> {
    prefix: &'a mut Option<String>,
    shards: &'a mut Option<u16>,
}

impl Options<'_> {
    fn take(&mut self, name: &str, value: &str) -> Result<bool, AddressError> {
        match name {
            "prefix" => *self.prefix = Some(value.to_owned()),
            "shards" => {
                let refused = || AddressError::Value {
                    name: "shards",
                    value: value.to_owned(),
                    allowed: "write 1 to 256",
                };
                *self.shards = Some(value.parse().map_err(|_| refused())?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_forms_are_read() {
        let address = Address::parse("redis://ann:s%40cret@example.org:7000/3?prefix=shop&shards=4").unwrap();
        assert_eq!((address.prefix.as_deref(), address.shards), (Some("shop"), Some(4)));
        let info = redis_info(address);
        assert_eq!(shown(&info), "redis://example.org:7000/3");
        assert_eq!(info.redis_settings().username(), Some("ann"));
        assert_eq!(info.redis_settings().password(), Some("s@cret"));

        let address = Address::parse("redis+unix:///run/redis.sock?db=2&user=ann&pass=x").unwrap();
        let info = redis_info(address);
        assert_eq!(shown(&info), "redis+unix:///run/redis.sock?db=2");
    }

    fn redis_info(address: Address) -> Box<ConnectionInfo> {
        match address.target {
            Target::Redis(info) => info,
            #[cfg(feature = "memory")]
            Target::Memory(_) => panic!("not Redis"),
        }
    }

    #[test]
    #[cfg(feature = "memory")]
    fn memory_has_a_name_or_none() {
        let address = Address::parse("memory://shop?shards=3").unwrap();
        assert!(matches!(address.target, Target::Memory(Some(name)) if name == "shop"));
        assert_eq!(address.shards, Some(3));
        assert!(matches!(Address::parse("memory://").unwrap().target, Target::Memory(None)));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (url, message) in [
            ("http://user:hunter2@host", "this is no address of a queue"),
            ("user:hunter2@host", "this is no address of a queue"),
            ("redis://:hunter2@host?shard=3", "option \"shard\" is unknown"),
            ("redis://:hunter2@host?shards=many", "shards cannot be \"many\": write 1 to 256"),
            ("redis://:hunter2@host/x", "the URL cannot be used"),
            ("redis://:hunter2@/", "this is no address of a queue"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(message), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
