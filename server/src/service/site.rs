use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};
use delayline_http::Problem;

use crate::service::listener::{ListenAddress, Listener};
use crate::service::origins::Origins;
use crate::service::peers::Peer;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// By which names the service is addressed. A page of another site that has its own name lead here would else count as
/// ours.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    names: Arc<[String]>,
    /// Whether other machines reach it, by whatever address: an address cannot be made to lead elsewhere.
    is_reachable: bool,
    /// Whose pages may change something.
    origins: Origins,
}

impl Site {
    /// The service at these addresses, and at further `names`, which pages of `origins` may use.
    pub(crate) fn new<'a>(
        listeners: impl IntoIterator<Item = &'a Listener>,
        names: &[String],
        origins: Origins,
    ) -> Site {
        let (mut own, mut is_reachable) = (vec!["localhost".to_owned()], false);
        for listener in listeners {
            if let ListenAddress::Tcp(place) = listener.said() {
                own.push(place.rsplit_once(':').map_or(&**place, |(host, _)| host).to_owned());
            }
            is_reachable |= listener.address().is_some_and(|address| !address.ip().is_loopback());
        }
        Site { names: names.iter().chain(&own).map(|name| bare(name)).collect(), is_reachable, origins }
    }

    pub(crate) fn origins(&self) -> &Origins {
        &self.origins
    }

    /// Whether a request is addressed to this service, and changes nothing or comes from no page of another site.
    pub(crate) fn admits(&self, peer: &Peer, request: &Request) -> Result<(), Problem> {
        let (method, headers) = (request.method(), request.headers());
        let host = if peer.is_at_unix_socket() {
            // No name leads a browser there; of a proxy that does, it is a page's own host.
            headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok())
        } else {
            Some(self.host(request.uri(), headers)?)
        };
        if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
            return Ok(());
        }
        self.is_no_other_site(headers, host.as_ref())
    }

    /// Whom the request is addressed to, if that is this service.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, Problem> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Problem::bad("bad_host", "a request must have one header Host"));
        };
        let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        let host = host.filter(|host| !host.as_str().contains('@'));
        let host = host
            .ok_or_else(|| Problem::bad("bad_host", "the header Host is no host with or without a port"))?;
        for host in [Some(&host), uri.authority()].into_iter().flatten() {
            if !self.is_ours(host.host()) {
                let shown: String = host.host().chars().take(80).collect();
                let detail = format!(
                    "this service is not {shown:?}: ask for it by its address, or start it with --host and that name"
                );
                return Err(Problem::new(421, "wrong_host", detail));
            }
        }
        Ok(host)
    }

    /// Refuses what a browser says that it sends for a page of another origin, unless that may; programs say nothing of the
    /// kind.
    fn is_no_other_site(&self, headers: &HeaderMap, host: Option<&Authority>) -> Result<(), Problem> {
        let is_same = |origin: &str| {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            let is_host =
                |host: &Authority| authority.is_some_and(|page| page.eq_ignore_ascii_case(host.as_str()));
            host.is_some_and(is_host)
        };
        let is_ours = |fetched: &str| matches!(fetched, "same-origin" | "none");
        let mut origins = headers.get_all(header::ORIGIN).iter().map(|value| value.to_str());
        let mut fetched = headers.get_all(SEC_FETCH_SITE).iter().map(|value| value.to_str());
        let is_own = origins.all(|origin| origin.is_ok_and(is_same))
            && fetched.all(|fetched| fetched.is_ok_and(is_ours));
        if is_own || self.origins.allow(headers) {
            return Ok(());
        }
        let detail = "a page of another origin may change nothing here, and take nothing: have its server ask, or start \
                      the service with --cors and that origin";
        Err(Problem::new(403, "cross_site", detail))
    }

    fn is_ours(&self, host: &str) -> bool {
        let host = bare(host);
        match host.parse::<IpAddr>() {
            Ok(address) => self.is_reachable || address.is_loopback() || self.names.contains(&host),
            Err(_) => self.names.contains(&host),
        }
    }
}

/// A host in the form in which hosts are compared.
fn bare(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}
