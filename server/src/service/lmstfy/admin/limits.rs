use axum::extract::{RawPathParams, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use delayline_http::Object;
use delayline_http::body::DOCUMENT_BYTES;
use serde::Serialize;
use serde_json::json;

use super::super::answer::{Refusal, compact, json as answer_json, text};
use super::super::throttle::Limiter;
use super::super::{Lmstfy, Shared, tokens};
use super::{no_such_pool, param};
use crate::service::body::Inbound;
use crate::service::registry::Kind;

/// A limit of a token; its fields are in lmstfy's order.
#[derive(Serialize)]
struct Limited {
    namespace: String,
    token: String,
    limiter: Limiter,
}

/// All limits.
pub(super) async fn list(State(lmstfy): State<Shared>) -> Result<Response, Refusal> {
    let entries = lmstfy.registry.current().await?;
    let limits = entries.all::<Limiter>(Kind::LmstfyLimit).filter_map(|(key, limiter)| {
        let (namespace, token) = tokens::shown(key)?;
        Some(Limited { namespace: namespace.to_owned(), token, limiter })
    });
    Ok(answer_json(StatusCode::OK, &limits.collect::<Vec<_>>()))
}

pub(super) async fn show(State(lmstfy): State<Shared>, params: RawPathParams) -> Result<Response, Refusal> {
    let limiter: Option<Limiter> = match key(&params) {
        Ok(key) => lmstfy.registry.current().await?.get(Kind::LmstfyLimit, &key),
        Err(_) => None,
    };
    let status = if limiter.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    Ok(answer_json(status, &limiter))
}

/// Gives a token a limit that has none.
pub(super) async fn add(
    State(lmstfy): State<Shared>,
    params: RawPathParams,
    request: Request,
) -> Result<Response, Refusal> {
    let limiter = match read(&lmstfy, request).await? {
        Ok(limiter) => limiter,
        Err(refused) => return Ok(refused),
    };
    if !lmstfy.registry.put_new(Kind::LmstfyLimit, &key(&params)?, &limiter).await? {
        let named = param(&params, "token");
        let token = named.strip_prefix("default:").unwrap_or(named);
        let text = format!("throttler token({token}) has already exists");
        return Err(Refusal::error(StatusCode::INTERNAL_SERVER_ERROR, text));
    }
    Ok(answer_json(StatusCode::CREATED, &json!({ "limiter": limiter })))
}

/// Gives a token a limit, in place of the one it may have.
pub(super) async fn set(
    State(lmstfy): State<Shared>,
    params: RawPathParams,
    request: Request,
) -> Result<Response, Refusal> {
    let limiter = match read(&lmstfy, request).await? {
        Ok(limiter) => limiter,
        Err(refused) => return Ok(refused),
    };
    lmstfy.registry.put(Kind::LmstfyLimit, &key(&params)?, &limiter).await?;
    Ok(answer_json(StatusCode::OK, &json!({ "limiter": limiter })))
}

/// Takes a token's limit away; it need not have one.
pub(super) async fn delete(State(lmstfy): State<Shared>, params: RawPathParams) -> Result<Response, Refusal> {
    if let Ok(key) = key(&params) {
        lmstfy.registry.remove(Kind::LmstfyLimit, &key).await?;
    }
    Ok(answer_json(StatusCode::OK, &json!({ "msg": "success" })))
}

fn key(params: &RawPathParams) -> Result<String, Refusal> {
    let namespace = param(params, "namespace").parse();
    let namespace = namespace.map_err(|_| Refusal::bad("namespace name contains forbidden characters"))?;
    tokens::key_of_named(&namespace, param(params, "token")).ok_or_else(no_such_pool)
}

/// The limiter in a body, or what is answered to one that cannot be.
async fn read(lmstfy: &Lmstfy, request: Request) -> Result<Result<Limiter, Response>, Refusal> {
    let (parts, body) = request.into_parts();
    let body = Inbound::of(&parts, body, lmstfy.app.patience).whole(DOCUMENT_BYTES).await;
    let body = body.map_err(|unread| Refusal::unread(unread, "body too large"))?;
    let limiter: Limiter = match Object::read(&body) {
        Ok(limiter) => limiter,
        Err(why) => {
            let error = json!({ "error": { "detail": why.to_string() } });
            return Ok(Err(text(StatusCode::BAD_REQUEST, compact(&error))));
        }
    };
    if limiter.read == 0 && limiter.write == 0 {
        return Ok(Err(answer_json(StatusCode::BAD_REQUEST, &json!({ "limiter": limiter }))));
    }
    if limiter.interval == 0 {
        return Err(Refusal::bad("interval should be > 0"));
    }
    let refused = |text: &str| Err(Refusal::error(StatusCode::INTERNAL_SERVER_ERROR, text));
    if limiter.interval < 0 {
        return refused("limiter interval should be > 0");
    }
    if limiter.read <= 0 && limiter.write <= 0 {
        return refused("the read and write of limiter can't be <= 0 at the same time");
    }
    Ok(Ok(limiter))
}
