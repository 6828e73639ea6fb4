use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use delayline_http::Segment;
use delayline_tokio::Span;
use serde_json::json;

use super::options::Said;
use super::path::InPath;
use crate::service::app::Shared;
use crate::service::body::{Empty, Inbound};
use crate::service::rejection::Rejection;
use crate::service::tokens::{Caller, Made, NewToken, ShownToken, no_such_token, now};

/// The longest that an old token may live beside the one that replaces it.
const OVERLAP_MAX: Span = Span(30 * 86_400_000);
/// How long it does if nothing is said.
const OVERLAP: Span = Span(86_400_000);

/// The id of a token, in a path.
pub(super) struct TokenId(String);

impl std::str::FromStr for TokenId {
    type Err = String;

    fn from_str(text: &str) -> Result<TokenId, String> {
        Ok(TokenId(text.to_owned()))
    }
}

impl Segment for TokenId {
    const NAME: &'static str = "token";
    const CODE: &'static str = "bad_token";
}

pub(super) async fn list(
    State(app): State<Shared>,
    caller: Caller,
    Said(options): Said,
) -> Result<Response, Rejection> {
    options.finish()?;
    caller.reaches_all()?;
    let tokens = app.tokens.list().await?;
    let tokens: Vec<ShownToken> = tokens.iter().map(|(token, used)| ShownToken::new(token, *used)).collect();
    Ok(Json(json!({ "tokens": tokens })).into_response())
}

pub(super) async fn create(
    State(app): State<Shared>,
    caller: Caller,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    caller.reaches_all()?;
    let grant = NewToken::read(&body.document().await?)?.grant(now())?;
    Ok(made(&app.tokens.create(grant).await?))
}

pub(super) async fn rotate(
    State(app): State<Shared>,
    caller: Caller,
    InPath(TokenId(id)): InPath<TokenId>,
    Said(mut options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let overlap = options.in_range("overlap", Span(0)..=OVERLAP_MAX)?.unwrap_or(OVERLAP);
    options.finish()?;
    caller.reaches_all()?;
    Ok(made(&app.tokens.rotate(&id, overlap.0).await?))
}

pub(super) async fn revoke(
    State(app): State<Shared>,
    caller: Caller,
    InPath(TokenId(id)): InPath<TokenId>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    options.finish()?;
    caller.reaches_all()?;
    if app.tokens.revoke(&id).await? {
        Ok(Json(json!({ "id": id, "status": "revoked" })).into_response())
    } else {
        Err(no_such_token(&id).into())
    }
}

fn made(Made { id, text }: &Made) -> Response {
    (StatusCode::CREATED, Json(json!({ "id": id, "token": text }))).into_response()
}
