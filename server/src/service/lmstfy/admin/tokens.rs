use std::collections::BTreeMap;

use axum::extract::{RawPathParams, RawQuery, Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use delayline_http::body::DOCUMENT_BYTES;
use delayline_tokio::Namespace;
use serde_json::json;
use ulid::Ulid;

use super::super::Shared;
use super::super::answer::{Refusal, indented_json};
use super::super::query::Query;
use super::super::target::is_name;
use super::super::tokens::{self, Kept, POOL};
use super::{no_such_pool, param};
use crate::service::body::Inbound;
use crate::service::registry::Kind;

const NAMESPACE_BYTES: usize = 255;
/// The shortest token that an administrator may choose.
const TOKEN_BYTES: usize = 20;
const FORM: &str = "application/x-www-form-urlencoded";

/// The tokens of a namespace: what administrators may call them, and their descriptions.
pub(super) async fn list(
    State(lmstfy): State<Shared>,
    params: RawPathParams,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = Query::of(query.as_deref());
    let prefix = match query.get("pool").unwrap_or_default() {
        "" => String::new(),
        POOL => format!("{POOL}:"),
        _ => return Err(no_such_pool()),
    };
    let wanted = param(&params, "namespace");
    let entries = lmstfy.registry.current().await?;
    let tokens = entries.all::<Kept>(Kind::LmstfyToken).filter_map(|(key, kept)| {
        let (namespace, shown) = tokens::shown(key)?;
        (namespace == wanted).then(|| (format!("{prefix}{shown}"), kept.description))
    });
    let tokens: BTreeMap<String, String> = tokens.collect();
    Ok(indented_json(StatusCode::OK, &json!({ "tokens": tokens })))
}

/// Makes a token. Its text is in this answer, and nowhere else.
pub(super) async fn make(
    State(lmstfy): State<Shared>,
    params: RawPathParams,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let is_form = parts.headers.get(header::CONTENT_TYPE);
    let is_form = is_form.is_some_and(|value| value.as_bytes().starts_with(FORM.as_bytes()));
    let body = Inbound::of(&parts, body, lmstfy.app.patience).whole(DOCUMENT_BYTES).await;
    let body = body.map_err(|unread| Refusal::unread(unread, "body too large"))?;
    let query = Query::of(parts.uri.query());
    let form = Query::of(str::from_utf8(&body).ok().filter(|_| is_form));
    let given = |name| form.get(name).or_else(|| query.get(name)).unwrap_or_default();
    let (description, own) = (given("description"), given("token"));
    if description.is_empty() {
        return Err(Refusal::bad("invalid description"));
    }
    if (1..TOKEN_BYTES).contains(&own.len()) {
        return Err(Refusal::bad("the user token was too short"));
    }
    let namespace = namespace(&params)?;
    let (pool, token) = match own.split(':').collect::<Vec<_>>()[..] {
        [""] => (query.get("pool").unwrap_or_default(), drawn()?),
        [pool, token] => (pool, token.to_owned()),
        _ => (query.get("pool").unwrap_or_default(), own.to_owned()),
    };
    if !pool.is_empty() && pool != POOL {
        return Err(no_such_pool());
    }
    let (key, kept) = (tokens::key(&namespace, &token), Kept { description: description.to_owned() });
    if !lmstfy.registry.put_new(Kind::LmstfyToken, &key, &kept).await? {
        return Err(Refusal::bad("the token has already existed"));
    }
    Ok(indented_json(StatusCode::CREATED, &json!({ "token": token })))
}

fn namespace(params: &RawPathParams) -> Result<Namespace, Refusal> {
    let name = param(params, "namespace");
    if name.len() > NAMESPACE_BYTES {
        return Err(Refusal::bad("the namespace name was too long"));
    }
    let named = Some(name).filter(|name| is_name(name)).and_then(|name| name.parse().ok());
    named.ok_or_else(|| Refusal::bad("namespace name contains forbidden characters"))
}

/// A token as long as lmstfy's, of which each bit is random.
fn drawn() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|why| Refusal::internal("no_randomness", why))?;
    Ok(Ulid(u128::from_be_bytes(bytes)).to_string())
}

/// Revokes a token, with its limits; it need not be there.
pub(super) async fn delete(
    State(lmstfy): State<Shared>,
    params: RawPathParams,
) -> Result<StatusCode, Refusal> {
    // A namespace that cannot be has no tokens.
    let Ok(namespace) = param(&params, "namespace").parse::<Namespace>() else {
        return Ok(StatusCode::NO_CONTENT);
    };
    let key = tokens::key_of_named(&namespace, param(&params, "token")).ok_or_else(no_such_pool)?;
    lmstfy.registry.remove(Kind::LmstfyToken, &key).await?;
    lmstfy.registry.remove(Kind::LmstfyLimit, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}
