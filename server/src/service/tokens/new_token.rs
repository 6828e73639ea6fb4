use delayline_http::{Object, Problem, Scope, Time, Written};
use delayline_tokio::{Span, UnixMs};
use serde::Deserialize;

use super::{Grant, QueuePattern, TokenLimits};

const QUEUES_MAX: usize = 64;
const DESCRIPTION_CHARS: usize = 256;

/// A token that is wanted: the body of `POST /v1/tokens`, and what `delayline token create` is told.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NewToken {
    pub(crate) scopes: Vec<Written<Scope>>,
    /// None for all queues.
    pub(crate) queues: Vec<QueuePattern>,
    pub(crate) description: String,
    pub(crate) expires_in: Option<Written<Span>>,
    pub(crate) expires: Option<Written<Time>>,
    #[serde(deserialize_with = "Object::within")]
    pub(crate) limits: TokenLimits,
}

impl NewToken {
    pub(crate) fn read(json: &[u8]) -> Result<NewToken, Problem> {
        Object::read(json).map_err(|error| {
            let detail = format!(
                "the body describes no token: {error}: write {{\"scopes\": [\"publish\"], \"queues\": [\"shop~*\"], \
                 \"expires_in\": \"90d\", \"description\": \"…\"}}"
            );
            Problem::bad("bad_json", detail)
        })
    }

    /// What the token may do.
    pub(crate) fn grant(self, now: UnixMs) -> Result<Grant, Problem> {
        let refused = |detail: String| Err(Problem::bad("bad_token", detail));
        if self.scopes.is_empty() {
            return refused(
                "the token has no scope, and could do nothing: give publish, consume, read or admin".into(),
            );
        }
        if self.queues.len() > QUEUES_MAX {
            return refused(format!(
                "the token is for more than {QUEUES_MAX} patterns of queues: give fewer"
            ));
        }
        if self.description.chars().count() > DESCRIPTION_CHARS {
            return refused(format!(
                "the description is over {DESCRIPTION_CHARS} characters: give a shorter one"
            ));
        }
        let expires = match (self.expires_in, self.expires) {
            (Some(_), Some(_)) => {
                return refused("expires and expires_in exclude each other: give one".into());
            }
            (Some(span), None) => Some(now.0.saturating_add(span.0.0)),
            (None, at) => at.map(|at| at.0.0.0),
        };
        if expires.is_some_and(|expires| expires <= now.0) {
            return refused("the token would have expired already: give a later time".into());
        }
        let scopes = Scope::ALL.into_iter().filter(|scope| self.scopes.iter().any(|named| named.0 == *scope));
        Ok(Grant {
            scopes: scopes.map(|scope| scope.to_string()).collect(),
            queues: self.queues,
            description: self.description,
            expires,
            limits: self.limits,
            ..Grant::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs(1_000);

    fn grant(json: &str) -> Result<Grant, Problem> {
        NewToken::read(json.as_bytes())?.grant(NOW)
    }

    #[test]
    fn a_token_is_read() {
        let json =
            r#"{"scopes":["read","publish","read"],"queues":["shop~*"],"expires_in":"1s","description":"d"}"#;
        let read = grant(json).unwrap();
        assert_eq!(read.scopes, ["publish", "read"]);
        assert_eq!((read.expires, &*read.description, read.queues.len()), (Some(2_000), "d", 1));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let many = format!(r#"{{"scopes":["read"],"queues":[{}"a"]}}"#, "\"a\",".repeat(64));
        let long = format!(r#"{{"scopes":["read"],"description":"{}"}}"#, "x".repeat(257));
        for (json, says) in [
            ("{}", "no scope"),
            (r#"{"scopes":["write"]}"#, "is no scope"),
            (r#"{"scopes":["read"],"queue":"a"}"#, "unknown field"),
            (r#"{"scopes":["read"],"queues":["a b"]}"#, "no pattern of queues"),
            (r#"{"scopes":["read"],"expires":"1970-01-01T00:00:01Z"}"#, "expired already"),
            (r#"{"scopes":["read"],"expires":"2070-01-01T00:00:01Z","expires_in":"1s"}"#, "exclude"),
            (&many, "more than 64"),
            (&long, "over 256"),
        ] {
            let problem = grant(json).unwrap_err();
            assert!(problem.detail.contains(says), "{json}: {}", problem.detail);
        }
    }
}
