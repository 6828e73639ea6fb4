use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

/// The networks that are not the public internet, by IANA's registry of special-purpose addresses.
const NOT_PUBLIC_V4: [(Ipv4Addr, u8); 16] = [
    (Ipv4Addr::UNSPECIFIED, 8),           // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // carrier-grade NAT
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, metadata of clouds among them
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24), // AS112
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // relays of 6to4
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, broadcast among them
];

/// Of IPv6 only this is public, less the networks below.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const NOT_PUBLIC_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo among them
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4, which leads to any IPv4 address
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];
/// Networks without IPv4 reach it through these: the last 32 bits are the address.
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Which addresses pushes may connect to: those of the public internet, and what an operator allows beside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    allowed: Arc<[IpNet]>,
}

/// An address that pushes may not connect to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) struct Refused {
    pub(crate) host: String,
    pub(crate) address: IpAddr,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { host, address } = self;
        write!(
            f,
            "{host} is at {address}, which is no public address: push elsewhere, or allow it by --push-allow"
        )
    }
}

impl Addresses {
    pub(crate) fn allowing(allowed: &[IpNet]) -> Addresses {
        Addresses { allowed: allowed.into() }
    }

    /// Whether a connection to this address may be made.
    pub(crate) fn may(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_allowed = |address: IpAddr| self.allowed.iter().any(|network| network.contains(&address));
        if is_allowed(address) {
            return true;
        }
        match address {
            IpAddr::V4(address) => is_public_v4(address),
            IpAddr::V6(address) => match behind_nat64(address) {
                Some(behind) => is_allowed(behind.into()) || is_public_v4(behind),
                None => is_public_v6(address),
            },
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |&(network, bits): &(Ipv4Addr, u8)| Ipv4Net::new_assert(network, bits).contains(&address);
    !NOT_PUBLIC_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let within = |&(network, bits): &(Ipv6Addr, u8)| Ipv6Net::new_assert(network, bits).contains(&address);
    within(&GLOBAL_V6) && !NOT_PUBLIC_V6.iter().any(within)
}

fn behind_nat64(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let is_nat64 = Ipv6Net::new_assert(NAT64.0, NAT64.1).contains(&address);
    let [.., a, b, c, d] = address.octets();
    is_nat64.then(|| Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(allowed: &[&str], address: &str) -> bool {
        let allowed: Vec<IpNet> = allowed.iter().map(|network| network.parse().unwrap()).collect();
        Addresses::allowing(&allowed).may(address.parse().unwrap())
    }

    #[test]
    fn only_the_public_internet_may_be_reached() {
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(may(&[], public), "{public}");
        }
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!may(&[], refused), "{refused}");
        }
    }

    #[test]
    fn an_operator_may_allow_more_and_no_more_than_that() {
        for (allowed, address, expected) in [
            (&["127.0.0.0/8"][..], "127.0.0.1", true),
            (&["127.0.0.0/8"], "::ffff:127.0.0.1", true),
            (&["127.0.0.0/8"], "64:ff9b::127.0.0.1", true),
            (&["127.0.0.0/8"], "::1", false),
            (&["127.0.0.0/8"], "10.0.0.1", false),
            (&["10.1.0.0/16", "fd00::/8"], "10.1.2.3", true),
            (&["10.1.0.0/16", "fd00::/8"], "10.2.0.1", false),
            (&["10.1.0.0/16", "fd00::/8"], "fd00:ec2::254", true),
        ] {
            assert_eq!(may(allowed, address), expected, "{allowed:?} {address}");
        }
    }
}
