use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use thiserror::Error;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

/// How long a browser may remember what it was told.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Where a page comes from whose scripts may ask: a scheme, a host, and a port if it is not the usual one; or `*` for any.
#[derive(Clone, Debug)]
pub(crate) struct Origin(HeaderValue);

/// What no browser sends as an origin.
#[derive(Debug, Error)]
#[error("an origin is * or like https://app.example.org, in small letters and without a path")]
pub(crate) struct OriginError;

/// Where pages come from whose scripts may ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    named: Vec<HeaderValue>,
    is_any: bool,
}

/// What pages may do that may ask.
pub(crate) struct Sharing {
    pub(crate) methods: &'static [Method],
    /// The headers of an answer that they may read, in lower case, beside those that every page may.
    pub(crate) exposed: &'static [&'static str],
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Origin, OriginError> {
        let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
        let is_host = |host: &str| {
            let is_odd = |sign: char| {
                !sign.is_ascii_graphic() || sign.is_ascii_uppercase() || "/*?#@\\".contains(sign)
            };
            !host.is_empty() && !host.contains(is_odd)
        };
        let fits = text == "*" || host.is_some_and(is_host);
        let value = HeaderValue::from_str(text).map_err(|_| OriginError)?;
        if fits { Ok(Origin(value)) } else { Err(OriginError) }
    }
}

impl Origins {
    pub(crate) fn new(origins: &[Origin]) -> Origins {
        let (any, named): (Vec<_>, Vec<_>) =
            origins.iter().map(|Origin(origin)| origin.clone()).partition(|origin| origin == "*");
        Origins { named, is_any: !any.is_empty() }
    }

    /// Whether a page that a browser names in `Origin` may change something. With `*` that is so only where it shows a token:
    /// which pages have one is decided by whoever gives them out, and no browser adds it by itself.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return false };
        self.named.contains(origin) || (self.is_any && has_token(headers))
    }

    /// What tells browsers that they may ask from these origins, if there are any.
    pub(crate) fn layer(&self, sharing: &Sharing) -> Option<CorsLayer> {
        let (is_any, named) = (self.is_any, self.named.clone());
        let cors = match (is_any, named.is_empty()) {
            (true, _) => CorsLayer::new().allow_origin(AllowOrigin::any()),
            (false, false) => CorsLayer::new()
                .allow_origin(AllowOrigin::list(named))
                // Else a browser lets no page of the internet ask a service of its own machine or network.
                .allow_private_network(true),
            (false, true) => return None,
        };
        let cors = cors.max_age(REMEMBERED).allow_methods(sharing.methods.to_vec());
        let cors = cors.allow_headers(AllowHeaders::mirror_request());
        let exposed = sharing.exposed.iter().map(|name| HeaderName::from_static(name));
        Some(cors.expose_headers(exposed.collect::<Vec<_>>()))
    }
}

fn has_token(headers: &HeaderMap) -> bool {
    let authorization = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    // A browser may add Basic by itself, as it was told by a user for another page.
    authorization
        .is_some_and(|value| value.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"bearer ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        for origin in ["*", "https://app.example.org", "http://localhost:5173"] {
            assert!(origin.parse::<Origin>().is_ok(), "{origin}");
        }
        for wrong in [
            "",
            "app.example.org",
            "https://",
            "https://a/b",
            "https://a/",
            "https://*.a",
            "https://a b",
            "https://App.example.org",
            "https://ä.example.org",
            "https://ann@a",
            "https://a?b",
            "https://a#b",
            "null",
        ] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_of_a_named_origin_may_change_something_and_of_any_other_with_a_token() {
        let origins = |origins: &[&str]| {
            let origins: Vec<Origin> = origins.iter().map(|origin| origin.parse().unwrap()).collect();
            Origins::new(&origins)
        };
        let headers = |pairs: &[(HeaderName, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, value.parse().unwrap());
            }
            headers
        };
        let (named, any, none) = (origins(&["https://app.example"]), origins(&["*"]), origins(&[]));
        let here = (header::ORIGIN, "https://app.example");
        let token = (header::AUTHORIZATION, "Bearer t");
        for (headers, by_name, by_any) in [
            (headers(std::slice::from_ref(&here)), true, false),
            (headers(&[here.clone(), token.clone()]), true, true),
            (headers(&[(header::ORIGIN, "https://evil.example"), token.clone()]), false, true),
            (headers(&[(header::ORIGIN, "https://app.example:444")]), false, false),
            (headers(&[(header::ORIGIN, "null")]), false, false),
            (headers(&[here.clone(), (header::AUTHORIZATION, "Basic dTpw")]), true, false),
            (headers(&[here.clone(), (header::ORIGIN, "https://evil.example")]), false, false),
            (headers(&[]), false, false),
        ] {
            assert_eq!(named.allow(&headers), by_name, "{headers:?}");
            assert_eq!(any.allow(&headers), by_any, "{headers:?}");
            assert!(!none.allow(&headers), "{headers:?}");
        }
    }
}
