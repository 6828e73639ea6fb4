use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use delayline_http::{Headers, Options};

use crate::service::rejection::Rejection;

/// What a request says beside its path and body.
pub(crate) struct Said(pub(crate) Options);

impl<S: Sync> FromRequestParts<S> for Said {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Said, Rejection> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Said(Options::new(query, &headers_of(&parts.headers))?))
    }
}

/// The headers as the API reads them.
pub(crate) fn headers_of(headers: &HeaderMap) -> Headers<'_> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}
