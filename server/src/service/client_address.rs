use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Serialize, Serializer};

/// Where a client is, for limits and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ClientAddress {
    Ip(IpAddr),
    /// On this machine, at the Unix socket: all of them together.
    Unix,
}

impl ClientAddress {
    /// Whom it counts as: of IPv6 each network of one site, since whoever has one address there has 2^64.
    pub(crate) fn counted(self) -> ClientAddress {
        match self {
            ClientAddress::Ip(IpAddr::V6(address)) => {
                ClientAddress::Ip(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into())
            }
            other => other,
        }
    }
}

impl From<IpAddr> for ClientAddress {
    /// An IPv4 address that came as IPv6 is the same client.
    fn from(address: IpAddr) -> ClientAddress {
        ClientAddress::Ip(address.to_canonical())
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientAddress::Ip(address) => address.fmt(f),
            ClientAddress::Unix => f.write_str("unix"),
        }
    }
}

impl Serialize for ClientAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        for (address, counts_as) in [
            ("10.1.2.3", "10.1.2.3"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("::1", "::"),
        ] {
            let address = ClientAddress::from(address.parse::<IpAddr>().unwrap());
            assert_eq!(address.counted().to_string(), counts_as);
        }
        assert_eq!(ClientAddress::Unix.counted(), ClientAddress::Unix);
    }
}
