use delayline_http::Time;
use delayline_tokio::UnixMs;
use serde::Serialize;

use super::{QueuePattern, Token, TokenLimits};

/// A token as JSON, without its secret.
#[derive(Debug, Serialize)]
pub(crate) struct ShownToken {
    pub(crate) id: String,
    pub(crate) scopes: Vec<String>,
    /// None for all queues.
    pub(crate) queues: Vec<QueuePattern>,
    pub(crate) description: String,
    pub(crate) created: Time,
    pub(crate) expires: Option<Time>,
    /// When it was last used, to about a minute.
    pub(crate) last_used: Option<Time>,
    pub(crate) limits: TokenLimits,
}

impl ShownToken {
    pub(crate) fn new(token: &Token, last_used: Option<UnixMs>) -> ShownToken {
        let grant = &token.grant;
        ShownToken {
            id: token.id.clone(),
            scopes: grant.scopes.clone(),
            queues: grant.queues.clone(),
            description: grant.description.clone(),
            created: Time(UnixMs(grant.created)),
            expires: grant.expires.map(|ms| Time(UnixMs(ms))),
            last_used: last_used.map(Time),
            limits: grant.limits.clone(),
        }
    }
}
