use std::fmt;

use hmac::digest::CtOutput;
use sha2::{Digest, Sha256};

use crate::{Headers, Problem};

const SCHEME: &str = "bearer";

/// What a caller must know to be let in, as `Authorization: Bearer <token>`.
///
/// Only its hash is kept, and it is not printed.
#[derive(Clone)]
pub struct BearerToken(CtOutput<Sha256>);

impl BearerToken {
    /// The token of this text.
    pub fn new(text: &str) -> BearerToken {
        BearerToken(hash(text.as_bytes()))
    }

    /// Whether this is it, found out in a time that does not depend on how much of it is right.
    pub fn is(&self, given: &[u8]) -> bool {
        self.0 == hash(given)
    }

    /// The token that a header `Authorization` shows.
    pub fn shown(authorization: &[u8]) -> Option<&[u8]> {
        let (scheme, token) = authorization.split_at_checked(SCHEME.len())?;
        let spaced = token.strip_prefix(b" ").filter(|_| scheme.eq_ignore_ascii_case(SCHEME.as_bytes()))?;
        let token = spaced.trim_ascii();
        (!token.is_empty()).then_some(token)
    }

    /// Lets a request in if it has one of the tokens, in a time that does not depend on how much of one it has.
    pub fn admit(tokens: &[BearerToken], headers: &Headers<'_>) -> Result<(), Problem> {
        let refused =
            |detail| Err(Problem::new(401, "unauthorized", detail).header("www-authenticate", "Bearer"));
        let Some(given) = headers.get("authorization").and_then(BearerToken::shown) else {
            return refused("no token is given: send the header Authorization: Bearer TOKEN");
        };
        if tokens.iter().any(|token| token.is(given)) {
            Ok(())
        } else {
            refused("the token is not one that is known here: check which one is sent")
        }
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(..)")
    }
}

fn hash(text: &[u8]) -> CtOutput<Sha256> {
    CtOutput::new(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(tokens: &[&str], authorization: Option<&[u8]>) -> Result<(), Problem> {
        let tokens: Vec<BearerToken> = tokens.iter().map(|token| BearerToken::new(token)).collect();
        let headers = authorization.into_iter().map(|value| ("Authorization", value)).collect();
        BearerToken::admit(&tokens, &headers)
    }

    #[test]
    fn lets_in_who_has_a_token() {
        for authorization in ["Bearer s3cret", "bearer s3cret", "BEARER   s3cret ", "Bearer old"] {
            assert!(admit(&["s3cret", "old"], Some(authorization.as_bytes())).is_ok(), "{authorization}");
        }
    }

    #[test]
    fn says_to_others_what_to_send() {
        let none = "send the header Authorization";
        for (authorization, says) in [
            (None, none),
            (Some(&b""[..]), none),
            (Some(b"s3cret"), none),
            (Some(b"Bearer"), none),
            (Some(b"Bearer "), none),
            (Some(b"Bearers3cret"), none),
            (Some(b"Basic s3cret"), none),
            (Some(b"Bearer s3cre"), "not one that is known"),
            (Some(b"Bearer s3cret2"), "not one that is known"),
            (Some(b"Bearer S3CRET"), "not one that is known"),
            (Some(b"Bearer \xff"), "not one that is known"),
        ] {
            let problem = admit(&["s3cret", "old"], authorization).unwrap_err();
            assert!(problem.detail.contains(says), "{authorization:?}: {}", problem.detail);
            let response = crate::Response::from(problem);
            assert_eq!(response.status, 401);
            assert!(response.headers.contains(&("www-authenticate", "Bearer".to_owned())));
        }
        assert!(admit(&[], Some(b"Bearer s3cret")).is_err());
        assert_eq!(format!("{:?}", BearerToken::new("s3cret")), "BearerToken(..)");
    }
}
