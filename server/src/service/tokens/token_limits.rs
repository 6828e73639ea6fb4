use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use delayline_http::{Problem, Written};
use serde::{Deserialize, Serialize};

use super::Token;
use crate::service::rate::{Buckets, RateLimit};

/// The most tokens whose use is counted: those of a registry fit.
const MOST: usize = 20_000;

/// How much a token may ask for of each process of the service; what is not set is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TokenLimits {
    /// Requests a second, as in `100/s burst 200`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<Written<RateLimit>>,
    /// Bytes of bodies a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<Written<RateLimit>>,
    /// Requests at once; a connection has one of them at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_once: Option<usize>,
    /// Takes that wait at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) takes: Option<usize>,
}

/// What the tokens have used of their limits, in this process.
pub(crate) struct TokenUse {
    requests: Buckets<String>,
    bytes: Buckets<String>,
    at_once: Arc<Counts>,
    takes: Arc<Counts>,
}

/// How much of a kind each token has under way.
#[derive(Default)]
struct Counts(Mutex<HashMap<String, usize>>);

/// Something of a token is under way until this is dropped.
pub(crate) struct UnderWay {
    counts: Arc<Counts>,
    id: String,
}

impl Default for TokenUse {
    fn default() -> TokenUse {
        let buckets = || Buckets::new(MOST);
        TokenUse { requests: buckets(), bytes: buckets(), at_once: Arc::default(), takes: Arc::default() }
    }
}

impl TokenUse {
    /// A request with this token, of so many bytes, unless the token has asked for too much.
    pub(super) fn request(&self, token: &Token, bytes: u64) -> Result<Option<UnderWay>, Problem> {
        let limits = &token.grant.limits;
        let under_way = limits.at_once.map(|most| {
            let what = "requests at once with this token";
            self.at_once.begin(&token.id, most, || too_many("too_many_requests", most, what))
        });
        if let Some(Written(limit)) = &limits.requests {
            let admitted = self.requests.take(token.id.clone(), *limit, 1);
            admitted.map_err(|exceeded| too_fast("requests", *limit, exceeded.retry_after_s()))?;
        }
        if let Some(Written(limit)) = limits.bytes.as_ref().filter(|_| bytes > 0) {
            let admitted = self.bytes.take(token.id.clone(), *limit, bytes);
            admitted.map_err(|exceeded| too_fast("bytes", *limit, exceeded.retry_after_s()))?;
        }
        under_way.transpose()
    }

    /// A take with this token is to wait, unless too many do.
    pub(super) fn take(&self, token: &Token) -> Result<Option<UnderWay>, Problem> {
        let Some(most) = token.grant.limits.takes else { return Ok(None) };
        let refused =
            || too_many("too_many_takes", most, "takes of this token wait already, and more may not");
        self.takes.begin(&token.id, most, refused).map(Some)
    }
}

impl Counts {
    fn begin(
        self: &Arc<Counts>,
        id: &str,
        most: usize,
        refused: impl FnOnce() -> Problem,
    ) -> Result<UnderWay, Problem> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(id.to_owned()).or_default();
        if *count >= most {
            return Err(refused());
        }
        *count += 1;
        Ok(UnderWay { counts: Arc::clone(self), id: id.to_owned() })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.id);
            }
        }
    }
}

fn too_many(code: &'static str, most: usize, what: &str) -> Problem {
    let detail = format!("{most} {what}: wait for one to end, or ask for a token with a higher limit");
    Problem::new(429, code, detail).retry_after(1)
}

fn too_fast(what: &str, limit: RateLimit, retry_after_s: u32) -> Problem {
    let detail = format!(
        "this token may send {limit} {what}, and has sent more: wait as Retry-After says, send batches, or ask for a token \
         with a higher limit"
    );
    Problem::new(429, "too_many_requests", detail).retry_after(retry_after_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::tokens::Grant;

    fn token(limits: &str) -> Token {
        let limits = serde_json::from_str(limits).unwrap();
        Token::new("a", Grant { sha256: "0".repeat(64), limits, ..Grant::default() }).unwrap()
    }

    #[test]
    fn a_token_is_held_to_each_of_its_limits() {
        for (limits, code) in [
            (r#"{"requests":"1/s"}"#, "too_many_requests"),
            (r#"{"bytes":"10/s"}"#, "too_many_requests"),
            (r#"{"at_once":1}"#, "too_many_requests"),
        ] {
            let (token, uses) = (token(limits), TokenUse::default());
            let first = uses.request(&token, 10).unwrap();
            let refused = uses.request(&token, 10).err().unwrap();
            assert_eq!((refused.status, refused.code), (429, code), "{limits}");
            drop(first);
            assert_eq!(uses.request(&token, 10).is_ok(), limits.contains("at_once"), "{limits}");
        }
        let (token, uses) = (token(r#"{"takes":1}"#), TokenUse::default());
        let first = uses.take(&token).unwrap();
        assert_eq!(uses.take(&token).err().unwrap().code, "too_many_takes");
        drop(first);
        assert!(uses.take(&token).is_ok());
    }

    #[test]
    fn a_refused_request_leaves_nothing_under_way() {
        let (token, uses) = (token(r#"{"requests":"1/s","at_once":5}"#), TokenUse::default());
        drop(uses.request(&token, 0).unwrap());
        assert!(uses.request(&token, 0).is_err());
        assert!(uses.at_once.0.lock().unwrap().is_empty());
    }
}
