use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;
use axum::http::header::{FORWARDED, HeaderName};
use clap::ValueEnum;
use ipnet::IpNet;
use thiserror::Error;

use crate::service::client_address::ClientAddress;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Who is believed to say for whom a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustedProxy {
    Network(IpNet),
    /// Whoever connects to a Unix socket.
    Unix,
}

/// A text that names no proxies.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no network: write an address or a CIDR, as in 10.0.0.0/8 or 2001:db8::/32, or unix")]
pub(crate) struct TrustedProxyError(String);

/// The header by which proxies say it. One alone is read: what proxies do not set themselves is what their clients say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyHeader {
    /// As nginx, HAProxy and load balancers write it
    #[default]
    XForwardedFor,
    /// As RFC 7239 has it
    Forwarded,
}

/// The proxies in front of the service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    trusted: Vec<TrustedProxy>,
    header: ProxyHeader,
}

impl FromStr for TrustedProxy {
    type Err = TrustedProxyError;

    fn from_str(text: &str) -> Result<TrustedProxy, TrustedProxyError> {
        if text == "unix" {
            return Ok(TrustedProxy::Unix);
        }
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map(TrustedProxy::Network).map_err(|_| TrustedProxyError(text.chars().take(80).collect()))
    }
}

impl Proxies {
    pub(crate) fn new(trusted: Vec<TrustedProxy>, header: ProxyHeader) -> Proxies {
        Proxies { trusted, header }
    }

    pub(crate) fn trusts(&self, address: ClientAddress) -> bool {
        self.trusted.iter().any(|proxy| match (proxy, address) {
            (TrustedProxy::Network(network), ClientAddress::Ip(address)) => network.contains(&address),
            (TrustedProxy::Unix, ClientAddress::Unix) => true,
            _ => false,
        })
    }

    /// For whom `from` makes a request: for itself, unless it is trusted and says otherwise. Of the addresses that proxies
    /// have added one after the other, the last that is no proxy's own counts. The ones before it are what that client says.
    pub(crate) fn client(&self, from: ClientAddress, headers: &HeaderMap) -> ClientAddress {
        let mut client = from;
        let header = match self.header {
            ProxyHeader::XForwardedFor => X_FORWARDED_FOR,
            ProxyHeader::Forwarded => FORWARDED,
        };
        let lines = headers.get_all(header).iter().rev();
        let mut hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        while self.trusts(client) {
            let hop = hops.next().and_then(|hop| str::from_utf8(hop).ok());
            let Some(address) = hop.and_then(|hop| self.address(hop)) else { break };
            client = address.into();
        }
        client
    }

    /// The address in one hop, with or without a port. Some proxies hide it.
    fn address(&self, hop: &str) -> Option<IpAddr> {
        match self.header {
            ProxyHeader::XForwardedFor => address(hop.trim()),
            ProxyHeader::Forwarded => {
                let mut pairs = hop.split(';').filter_map(|pair| pair.trim().split_once('='));
                let (_, value) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
                address(value.trim_matches('"'))
            }
        }
    }
}

fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip()).ok();
    bare.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(name, line.parse().unwrap());
        }
        headers
    }

    fn ip(text: &str) -> ClientAddress {
        ClientAddress::from(text.parse::<IpAddr>().unwrap())
    }

    fn proxies(header: ProxyHeader) -> Proxies {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().unwrap());
        Proxies::new(trusted.into(), header)
    }

    #[test]
    fn the_last_address_that_is_no_proxys_counts() {
        let proxies = proxies(ProxyHeader::XForwardedFor);
        for (lines, client) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["192.0.2.66, 192.0.2.1"], "192.0.2.1"),
            (&["192.0.2.66, 192.0.2.1, 10.9.9.9"], "192.0.2.1"),
            (&["192.0.2.66", "192.0.2.1", "10.9.9.9 , 2001:db8::7"], "192.0.2.1"),
            (&["192.0.2.1:1234"], "192.0.2.1"),
            (&["[2001:db9::1]:1234"], "2001:db9::1"),
            (&["::ffff:192.0.2.1"], "192.0.2.1"),
            // All of them are proxies, or the last says nothing that can be read.
            (&["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
            (&["192.0.2.66, unknown, 10.2.2.2"], "10.2.2.2"),
            (&["192.0.2.66, "], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            let headers = headers("x-forwarded-for", lines);
            assert_eq!(proxies.client(ip("10.0.0.1"), &headers), ip(client), "{lines:?}");
            assert_eq!(proxies.client(ip("192.0.2.9"), &headers), ip("192.0.2.9"), "not a proxy: {lines:?}");
            assert_eq!(Proxies::default().client(ip("10.0.0.1"), &headers), ip("10.0.0.1"), "{lines:?}");
        }
    }

    #[test]
    fn the_header_of_rfc_7239_is_read_only_where_proxies_set_it() {
        let proxies = proxies(ProxyHeader::Forwarded);
        for (lines, client) in [
            (&["for=192.0.2.1"][..], "192.0.2.1"),
            (&["For=\"[2001:db9::1]:4711\";proto=https;by=10.0.0.9"], "2001:db9::1"),
            (&["for=192.0.2.66, proto=https; for=192.0.2.1 , for=10.1.1.1"], "192.0.2.1"),
            (&["for=192.0.2.66, for=_hidden"], "10.0.0.1"),
            (&["proto=https"], "10.0.0.1"),
        ] {
            let headers = headers("forwarded", lines);
            assert_eq!(proxies.client(ip("10.0.0.1"), &headers), ip(client), "{lines:?}");
        }
        let forged = headers("x-forwarded-for", &["192.0.2.66"]);
        assert_eq!(proxies.client(ip("10.0.0.1"), &forged), ip("10.0.0.1"));
    }

    #[test]
    fn a_proxy_is_an_address_a_network_or_whoever_has_the_socket() {
        let any = |text: &str| Proxies::new(vec![text.parse().unwrap()], ProxyHeader::XForwardedFor);
        assert!(any("192.0.2.1").trusts(ip("192.0.2.1")) && !any("192.0.2.1").trusts(ip("192.0.2.2")));
        assert!(any("192.0.2.0/24").trusts(ip("::ffff:192.0.2.2")));
        assert!(any("unix").trusts(ClientAddress::Unix) && !any("0.0.0.0/0").trusts(ClientAddress::Unix));
        for wrong in ["", "10.0.0.0/33", "example.org", "10.0.0"] {
            assert!(wrong.parse::<TrustedProxy>().is_err(), "{wrong}");
        }
    }
}
