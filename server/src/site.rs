use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use delayline_http::Problem;

use crate::app::Shared;
use crate::rejection::Rejection;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// By which names the service is addressed. A page of another site that has its own name lead here would else count as
/// ours.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    names: Arc<[String]>,
    /// Whether other machines reach it, by whatever address: an address cannot be made to lead elsewhere.
    is_reachable: bool,
}

/// Lets a request through if it is addressed to this service, and if it changes nothing or comes from no page of another
/// site.
pub(crate) async fn check(
    State(app): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, Rejection> {
    let (method, headers) = (request.method(), request.headers());
    let host = app.site.host(request.uri(), headers)?;
    if ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
        is_no_other_site(headers, &host)?;
    }
    Ok(next.run(request).await)
}

impl Site {
    /// The service at `listen`, as it was said, which is `address`, and at further `names`.
    pub(crate) fn new(listen: &str, address: SocketAddr, names: &[String]) -> Site {
        let listen = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
        let names = names.iter().map(String::as_str).chain([listen, "localhost"]);
        Site { names: names.map(bare).collect(), is_reachable: !address.ip().is_loopback() }
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

/// Refuses what a browser says that it sends for a page of another origin; programs say nothing of the kind.
fn is_no_other_site(headers: &HeaderMap, host: &Authority) -> Result<(), Problem> {
    let is_same = |origin: &str| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host.as_str()))
    };
    let origins = headers.get_all(header::ORIGIN).iter();
    let is_ours = |fetched: &str| matches!(fetched, "same-origin" | "none");
    let fetched = headers.get_all(SEC_FETCH_SITE).iter();
    let (mut origins, mut fetched) =
        (origins.map(|value| value.to_str()), fetched.map(|value| value.to_str()));
    if origins.all(|origin| origin.is_ok_and(is_same)) && fetched.all(|fetched| fetched.is_ok_and(is_ours)) {
        return Ok(());
    }
    let detail = "a page of another origin may change nothing here, and take nothing: have its server ask";
    Err(Problem::new(403, "cross_site", detail))
}
