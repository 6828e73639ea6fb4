use std::fmt;
use std::sync::Arc;

use delayline_http::{Problem, Scope};
use delayline_tokio::QueueName;

use super::{Token, TokenUse, UnderWay};

/// Who asks, and what they may do.
#[derive(Clone)]
pub(crate) struct Caller(Who);

#[derive(Clone)]
enum Who {
    /// Nobody has to say who they are.
    Anybody,
    /// The process was given this token.
    Bootstrap,
    Token(Arc<Token>, Arc<TokenUse>),
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.name()).finish()
    }
}

impl Caller {
    pub(super) fn anybody() -> Caller {
        Caller(Who::Anybody)
    }

    pub(super) fn bootstrap() -> Caller {
        Caller(Who::Bootstrap)
    }

    pub(super) fn of(token: Arc<Token>, uses: Arc<TokenUse>) -> Caller {
        Caller(Who::Token(token, uses))
    }

    /// What the caller is called in logs: the id of a token.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.0 {
            Who::Anybody => None,
            Who::Bootstrap => Some("bootstrap"),
            Who::Token(token, _) => Some(&token.id),
        }
    }

    /// Refuses what the token is not for.
    pub(crate) fn may(&self, scope: Scope) -> Result<(), Problem> {
        match &self.0 {
            Who::Token(token, _) if !token.is_for(scope) => {
                let scope = scope.as_str();
                let detail = format!("the token is not for this: use one that has the scope {scope}");
                Err(Problem::new(403, "forbidden", detail))
            }
            _ => Ok(()),
        }
    }

    /// A request of so many bytes is under way until the answer is dropped; refused if the token has asked for too much.
    pub(crate) fn requests(&self, bytes: u64) -> Result<Option<UnderWay>, Problem> {
        match &self.0 {
            Who::Token(token, uses) => uses.request(token, bytes),
            Who::Anybody | Who::Bootstrap => Ok(None),
        }
    }

    /// A take waits until the answer is dropped; refused if too many of the token do.
    pub(crate) fn waits(&self) -> Result<Option<UnderWay>, Problem> {
        match &self.0 {
            Who::Token(token, uses) => uses.take(token),
            Who::Anybody | Who::Bootstrap => Ok(None),
        }
    }

    /// Whether the token is for this queue. A queue that it is not for is to the caller as if it were not there.
    pub(crate) fn reaches(&self, queue: &QueueName) -> bool {
        match &self.0 {
            Who::Token(token, _) => token.reaches(queue),
            Who::Anybody | Who::Bootstrap => true,
        }
    }

    /// Refuses whoever is not for all queues: what is asked for is about the whole deployment.
    pub(crate) fn reaches_all(&self) -> Result<(), Problem> {
        match &self.0 {
            Who::Token(token, _) if !token.grant.queues.is_empty() => {
                let detail =
                    "this is about the whole deployment, and the token is for some queues: use one for all";
                Err(Problem::new(403, "forbidden", detail))
            }
            _ => Ok(()),
        }
    }
}
