use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method};
use thiserror::Error;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::SYNC_TOKEN;

/// How long a browser may remember what it was told.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Where a page comes from whose scripts may ask: a scheme, a host, and a port if it is not the usual one; or `*` for any.
#[derive(Clone, Debug)]
pub(crate) struct Origin(HeaderValue);

/// What no browser sends as an origin.
#[derive(Debug, Error)]
#[error("an origin is * or like https://app.example.org, without a path")]
pub(crate) struct OriginError;

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Origin, OriginError> {
        let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
        let fits =
            text == "*" || host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', ' ']));
        let value = HeaderValue::from_str(text).map_err(|_| OriginError)?;
        if fits { Ok(Origin(value)) } else { Err(OriginError) }
    }
}

/// What tells browsers that they may ask from these origins, if there are any.
pub(super) fn layer(origins: &[Origin]) -> Option<CorsLayer> {
    let allowed = match origins {
        [] => return None,
        origins if origins.iter().any(|Origin(origin)| origin == "*") => AllowOrigin::any(),
        origins => AllowOrigin::list(origins.iter().map(|Origin(origin)| origin.clone())),
    };
    let cors = CorsLayer::new().allow_origin(allowed).max_age(REMEMBERED);
    let cors = cors.allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT]);
    let cors = cors.allow_headers(AllowHeaders::mirror_request());
    Some(cors.expose_headers([HeaderName::from_static(SYNC_TOKEN)]))
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
            "null",
        ] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
    }
}
