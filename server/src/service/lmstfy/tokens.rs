use std::fmt::Write;

use axum::http::StatusCode;
use delayline_http::Scope;
use delayline_tokio::Namespace;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Lmstfy;
use super::answer::Refusal;
use super::target::Target;
use crate::service::registry::Kind;
use crate::service::tokens::Caller;

/// The only pool there is.
pub(super) const POOL: &str = "default";
/// What stands before the hash of a token, where a token itself could stand.
const HASHED: &str = "sha256:";
const HASH_CHARS: usize = 64;

/// A token as it is kept: its text is not.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) description: String,
}

/// What a request calls a token: `[pool:]token`.
pub(super) struct Named<'a> {
    pool: &'a str,
    token: &'a str,
}

impl<'a> Named<'a> {
    pub(super) fn parse(text: &'a str) -> Named<'a> {
        match text.split_once(':') {
            Some((pool, token)) => Named { pool, token },
            None => Named { pool: POOL, token: text },
        }
    }

    /// The token, if it is of the pool that there is.
    pub(super) fn in_default_pool(&self) -> Option<&'a str> {
        (self.pool == POOL).then_some(self.token)
    }
}

/// Lets a request do something in queues by its token: one of lmstfy's for their namespace, or one of this service that is for
/// the queues and for what is done, which is answered, since it may have limits.
///
/// A token is looked for by its hash, so that the time it takes says nothing of the tokens that there are.
pub(super) async fn admit(
    lmstfy: &Lmstfy,
    target: &Target,
    token: &str,
    scopes: &[Scope],
) -> Result<Option<Caller>, Refusal> {
    if token.is_empty() {
        return Err(Refusal::error(StatusCode::UNAUTHORIZED, "token not found"));
    }
    if lmstfy.registry.current().await?.contains(Kind::LmstfyToken, &key(&target.namespace, token)) {
        return Ok(None);
    }
    let queues = target.queues().unwrap_or_default();
    match lmstfy.app.tokens.caller(Some(token.as_bytes())).await {
        // Where nobody needs a token of this service, a wrong one is nobody's.
        Ok(caller)
            if caller.name().is_some()
                && scopes.iter().all(|scope| caller.may(*scope).is_ok())
                && queues.iter().all(|queue| caller.reaches(queue)) =>
        {
            Ok(Some(caller))
        }
        Err(problem) if problem.status >= 500 => Err(problem.into()),
        _ => Err(Refusal::error(StatusCode::UNAUTHORIZED, "invalid token")),
    }
}

/// The name under which a token of a namespace, and its limits, are kept.
pub(super) fn key(namespace: &Namespace, token: &str) -> String {
    key_of_hash(namespace, &hash(token))
}

/// The same for what an administrator calls a token: its text, or `sha256:` and its hash, each with a pool before it or
/// without.
pub(super) fn key_of_named(namespace: &Namespace, text: &str) -> Option<String> {
    let bare = text.strip_prefix(POOL).and_then(|text| text.strip_prefix(':')).unwrap_or(text);
    let hashed = bare.strip_prefix(HASHED).filter(|hash| is_hash(hash));
    match hashed {
        Some(hash) => Some(key_of_hash(namespace, hash)),
        None => Named::parse(text).in_default_pool().map(|token| key(namespace, token)),
    }
}

/// What lists show for a token that is kept under this name: its namespace, and what administrators may call it.
pub(super) fn shown(key: &str) -> Option<(&str, String)> {
    let (namespace, hash) = key.split_once('/')?;
    Some((namespace, format!("{HASHED}{hash}")))
}

fn key_of_hash(namespace: &Namespace, hash: &str) -> String {
    format!("{namespace}/{hash}")
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_CHARS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hash(token: &str) -> String {
    let mut text = String::with_capacity(HASH_CHARS);
    for byte in Sha256::digest(token.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_may_be_called_by_its_hash_and_by_its_pool() {
        let shop: Namespace = "shop".parse().unwrap();
        let key = key(&shop, "01M7XABF4514NXTZ825W000000");
        let (namespace, shown) = shown(&key).unwrap();
        assert_eq!(namespace, "shop");
        assert!(shown.starts_with("sha256:") && !shown.contains("01M7"), "{shown}");
        for name in ["01M7XABF4514NXTZ825W000000", &shown] {
            assert_eq!(key_of_named(&shop, name).as_ref(), Some(&key));
            assert_eq!(key_of_named(&shop, &format!("default:{name}")).as_ref(), Some(&key));
        }
        assert_eq!(key_of_named(&shop, "other:01M7XABF4514NXTZ825W000000"), None);
        assert_eq!(key_of_named(&shop, "sha256:01M7"), None);
    }
}
