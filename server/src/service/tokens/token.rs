use delayline_http::Scope;
use delayline_tokio::{QueueName, UnixMs};
use hmac::digest::CtOutput;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::secret::{Secret, unhex};
use super::{QueuePattern, TokenLimits};

/// What a token may do, as the registry keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Grant {
    /// The SHA-256 of the secret, in hexadecimal.
    pub(crate) sha256: String,
    pub(crate) scopes: Vec<String>,
    /// The queues it is for; all of them if there is none.
    pub(crate) queues: Vec<QueuePattern>,
    pub(crate) description: String,
    /// When it was made, in milliseconds since 1970.
    pub(crate) created: u64,
    /// When it ends, in milliseconds since 1970.
    pub(crate) expires: Option<u64>,
    pub(crate) limits: TokenLimits,
}

/// A token.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) grant: Grant,
    scopes: Vec<Scope>,
    hash: [u8; 32],
}

impl Token {
    /// The token of a registry's entry, if the entry makes sense.
    pub(super) fn new(id: &str, grant: Grant) -> Option<Token> {
        let scopes =
            Scope::ALL.into_iter().filter(|scope| grant.scopes.iter().any(|name| name == scope.as_str()));
        let (scopes, hash) = (scopes.collect(), unhex(&grant.sha256)?);
        Some(Token { id: id.to_owned(), grant, scopes, hash })
    }

    /// Whether this is its secret, found out in a time that does not depend on how much of it is right.
    pub(super) fn is_of(&self, secret: &Secret) -> bool {
        let output = |hash: [u8; 32]| CtOutput::<Sha256>::new(hash.into());
        output(self.hash) == output(secret.hash())
    }

    pub(crate) fn has_expired(&self, now: UnixMs) -> bool {
        self.grant.expires.is_some_and(|expires| expires <= now.0)
    }

    pub(super) fn is_for(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    pub(super) fn reaches(&self, queue: &QueueName) -> bool {
        self.grant.queues.is_empty() || self.grant.queues.iter().any(|pattern| pattern.matches(queue))
    }
}
