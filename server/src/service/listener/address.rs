use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// Where to listen, as it is said: a host and a port, or the path of a Unix socket after `unix:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    Tcp(String),
    #[cfg(unix)]
    Unix(PathBuf),
}

/// A text that says not where to listen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ListenAddressError {
    #[error("{0:?} has no port: write HOST:PORT, as in 127.0.0.1:4747, or unix:PATH")]
    NoPort(String),
    #[error("unix: lacks the path of the socket, as in unix:/run/delayline.sock")]
    NoPath,
    #[cfg(not(unix))]
    #[error("there are no Unix sockets on this system")]
    NotHere,
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<ListenAddress, ListenAddressError> {
        match text.strip_prefix("unix:") {
            Some("") => Err(ListenAddressError::NoPath),
            #[cfg(not(unix))]
            Some(_) => Err(ListenAddressError::NotHere),
            #[cfg(unix)]
            Some(path) => Ok(ListenAddress::Unix(path.into())),
            None if text.contains(':') => Ok(ListenAddress::Tcp(text.to_owned())),
            None => Err(ListenAddressError::NoPort(text.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(place) => f.write_str(place),
            #[cfg(unix)]
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_path() {
        for text in ["127.0.0.1:4747", "localhost:0", "[::1]:4747", "unix:/run/delayline.sock", "unix:here"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
        assert_eq!("unix:".parse::<ListenAddress>(), Err(ListenAddressError::NoPath));
        for wrong in ["", "localhost", "4747"] {
            assert_eq!(wrong.parse::<ListenAddress>(), Err(ListenAddressError::NoPort(wrong.to_owned())));
        }
    }
}
