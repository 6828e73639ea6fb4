//! Who may do what: the tokens of a deployment, and what a request with one of them may do.

mod caller;
mod new_token;
mod pattern;
mod secret;
mod shown;
mod token;
mod token_limits;
mod usage;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use delayline_http::{BearerToken, Problem};
use delayline_tokio::UnixMs;

pub(crate) use self::caller::Caller;
pub(crate) use self::new_token::NewToken;
pub(crate) use self::pattern::QueuePattern;
pub(crate) use self::shown::ShownToken;
pub(crate) use self::token::{Grant, Token};
pub(crate) use self::token_limits::{TokenLimits, TokenUse, UnderWay};

use self::secret::Secret;
use self::usage::Usage;
use crate::service::registry::{Entries, Kind, Registry, RegistryError};

/// The tokens of a deployment, as this process knows them.
pub(crate) struct Tokens {
    registry: Arc<Registry>,
    /// Tokens from a file or the environment, which may do everything.
    bootstrap: Vec<BearerToken>,
    /// Whether a request must show a token. Once it must, it must until the process ends.
    are_required: AtomicBool,
    read: Mutex<Read>,
    usage: Usage,
    uses: Arc<TokenUse>,
}

/// The tokens of some entries.
#[derive(Clone, Default)]
struct Read {
    of: Arc<Entries>,
    tokens: Arc<HashMap<String, Arc<Token>>>,
}

/// A token that was just made: its text is told once, and kept nowhere.
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) text: String,
}

impl Tokens {
    /// The tokens of a registry, and those that the process was given. They are required if there are any, or if
    /// `are_required`.
    pub(crate) async fn new(
        registry: Arc<Registry>,
        bootstrap: &[String],
        are_required: bool,
    ) -> Result<Tokens, RegistryError> {
        let bootstrap: Vec<BearerToken> = bootstrap.iter().map(|text| BearerToken::new(text)).collect();
        let are_required = AtomicBool::new(are_required || !bootstrap.is_empty());
        let tokens = Tokens {
            registry,
            bootstrap,
            are_required,
            read: Mutex::default(),
            usage: Usage::default(),
            uses: Arc::default(),
        };
        tokens.read(tokens.registry.current().await?);
        Ok(tokens)
    }

    /// Whether a request must show a token.
    pub(crate) fn are_required(&self) -> bool {
        self.are_required.load(Relaxed)
    }

    /// Who asks, by the token that a request shows.
    pub(crate) async fn caller(&self, shown: Option<&[u8]>) -> Result<Caller, Problem> {
        if let Some(shown) = shown
            && self.bootstrap.iter().any(|token| token.is(shown))
        {
            return Ok(Caller::bootstrap());
        }
        let known = self.known().await.map_err(|error| {
            let detail = format!("tokens cannot be checked: {error}");
            Problem::later("tokens_unknown", detail)
        })?;
        let Some(known) = known else { return Ok(Caller::anybody()) };
        let Some(shown) = shown else {
            return Err(unauthorized("no token is given: send the header Authorization: Bearer TOKEN"));
        };
        let secret = Secret::read(shown);
        let token = secret.as_ref().and_then(|secret| Some((secret, known.get(&secret.id)?)));
        let token = token.filter(|(secret, token)| token.is_of(secret)).map(|(_, token)| token);
        let Some(token) = token else {
            return Err(unauthorized("the token is not one that is known here: check which one is sent"));
        };
        let now = now();
        if token.has_expired(now) {
            return Err(unauthorized("the token has expired: ask for a new one"));
        }
        self.usage.is_used(&self.registry, &token.id, now);
        Ok(Caller::of(Arc::clone(token), Arc::clone(&self.uses)))
    }

    /// Makes a token that may do what `grant` says.
    pub(crate) async fn create(&self, grant: Grant) -> Result<Made, Problem> {
        create(&self.registry, grant, now()).await
    }

    /// Makes a token that may do what another may, which ends after so many milliseconds.
    pub(crate) async fn rotate(&self, id: &str, overlap_ms: u64) -> Result<Made, Problem> {
        rotate(&self.registry, id, overlap_ms, now()).await
    }

    /// Ends a token at once; answers whether there was one.
    pub(crate) async fn revoke(&self, id: &str) -> Result<bool, Problem> {
        Ok(self.registry.remove(Kind::Token, id).await?)
    }

    /// All tokens in the order of their ids, with when each was last used, to about a minute.
    pub(crate) async fn list(&self) -> Result<Vec<(Arc<Token>, Option<UnixMs>)>, Problem> {
        list(&self.registry).await
    }

    /// The tokens, unless none is required. While that is so, nobody waits for Redis to say that there is one now.
    async fn known(&self) -> Result<Option<Arc<HashMap<String, Arc<Token>>>>, RegistryError> {
        if !self.are_required() {
            self.read(self.registry.latest());
        }
        if self.are_required() { Ok(Some(self.read(self.registry.current().await?))) } else { Ok(None) }
    }

    fn read(&self, entries: Arc<Entries>) -> Arc<HashMap<String, Arc<Token>>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&read.of, &entries) {
            let tokens = entries.all::<Grant>(Kind::Token);
            let tokens =
                tokens.filter_map(|(id, grant)| Some((id.to_owned(), Arc::new(Token::new(id, grant)?))));
            *read = Read { tokens: Arc::new(tokens.collect()), of: entries };
            if !read.tokens.is_empty() {
                self.are_required.store(true, Relaxed);
            }
        }
        Arc::clone(&read.tokens)
    }
}

/// Makes a token in a registry.
pub(crate) async fn create(registry: &Registry, grant: Grant, now: UnixMs) -> Result<Made, Problem> {
    let secret = Secret::draw();
    let grant = Grant { sha256: secret.sha256(), created: now.0, ..grant };
    if !registry.put_new(Kind::Token, &secret.id, &grant).await? {
        return Err(Problem::broken("two tokens have drawn one id: make it again"));
    }
    Ok(Made { text: secret.text(), id: secret.id })
}

/// See [`Tokens::rotate`].
pub(crate) async fn rotate(
    registry: &Arc<Registry>,
    id: &str,
    overlap_ms: u64,
    now: UnixMs,
) -> Result<Made, Problem> {
    let entries = registry.current().await?;
    let old: Grant = entries.get(Kind::Token, id).ok_or_else(|| no_such_token(id))?;
    let made = create(registry, old.clone(), now).await?;
    let ends = now.0.saturating_add(overlap_ms);
    let expires = old.expires.map_or(ends, |expires| expires.min(ends));
    registry.put(Kind::Token, id, &Grant { expires: Some(expires), ..old }).await?;
    Ok(made)
}

/// See [`Tokens::list`].
pub(crate) async fn list(registry: &Arc<Registry>) -> Result<Vec<(Arc<Token>, Option<UnixMs>)>, Problem> {
    let entries = registry.current().await?;
    let tokens: Vec<Arc<Token>> = entries
        .all::<Grant>(Kind::Token)
        .filter_map(|(id, grant)| Token::new(id, grant).map(Arc::new))
        .collect();
    let ids: Vec<&str> = tokens.iter().map(|token| token.id.as_str()).collect();
    let used = registry.notes(Kind::Token, &ids).await?;
    let used = used.into_iter().map(|text| text?.parse().ok().map(UnixMs));
    Ok(tokens.iter().cloned().zip(used).collect())
}

/// There is no token of this id.
pub(crate) fn no_such_token(id: &str) -> Problem {
    let shown: String = id.chars().take(80).collect();
    Problem::not_found("no_such_token", format!("there is no token {shown:?}: it may have been revoked"))
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(401, "unauthorized", detail).header("www-authenticate", "Bearer")
}

/// The wall clock.
pub(crate) fn now() -> UnixMs {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_http::Scope;
    use delayline_tokio::Prefix;

    async fn tokens() -> Tokens {
        let registry = Registry::open("memory://", &Prefix::default()).await.unwrap();
        Tokens::new(registry, &[], false).await.unwrap()
    }

    fn grant(scopes: &[Scope]) -> Grant {
        Grant { scopes: scopes.iter().map(|scope| scope.as_str().to_owned()).collect(), ..Grant::default() }
    }

    #[tokio::test]
    async fn anybody_is_let_in_until_there_is_a_token() {
        let tokens = tokens().await;
        assert!(tokens.caller(None).await.unwrap().may(Scope::Admin).is_ok());
        let made = tokens.create(grant(&[Scope::Read])).await.unwrap();
        assert_eq!(tokens.caller(None).await.unwrap_err().status, 401);
        assert_eq!(tokens.caller(Some(b"dl_0000000000000000_")).await.unwrap_err().status, 401);
        let caller = tokens.caller(Some(made.text.as_bytes())).await.unwrap();
        assert!(caller.may(Scope::Read).is_ok());
        assert_eq!(caller.may(Scope::Admin).unwrap_err().status, 403);
        assert!(tokens.revoke(&made.id).await.unwrap());
        assert_eq!(tokens.caller(Some(made.text.as_bytes())).await.unwrap_err().status, 401);
        assert_eq!(tokens.caller(None).await.unwrap_err().status, 401, "required once, required to the end");
    }

    #[tokio::test]
    async fn a_token_is_known_by_its_whole_text_alone() {
        let tokens = tokens().await;
        let made = tokens.create(grant(&Scope::ALL)).await.unwrap();
        let other = tokens.create(grant(&Scope::ALL)).await.unwrap();
        let (id, secret) = (&made.text[..20], &other.text[20..]);
        let mut longer = made.text.clone();
        longer.push('0');
        for wrong in
            [&made.text[..made.text.len() - 1], &longer, &made.text.to_uppercase(), &[id, secret].concat()]
        {
            assert_eq!(tokens.caller(Some(wrong.as_bytes())).await.unwrap_err().status, 401, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_rotated_token_lives_on_as_long_as_was_said() {
        let tokens = tokens().await;
        let old = tokens.create(grant(&[Scope::Consume])).await.unwrap();
        let new = tokens.rotate(&old.id, 60_000).await.unwrap();
        for made in [&old, &new] {
            assert!(tokens.caller(Some(made.text.as_bytes())).await.unwrap().may(Scope::Consume).is_ok());
        }
        let last = tokens.rotate(&new.id, 0).await.unwrap();
        assert_eq!(tokens.caller(Some(new.text.as_bytes())).await.unwrap_err().status, 401);
        assert!(tokens.caller(Some(last.text.as_bytes())).await.is_ok());
        assert_eq!(tokens.list().await.unwrap().len(), 3);
        assert_eq!(tokens.rotate("nobody", 0).await.err().map(|problem| problem.status), Some(404));
    }

    #[tokio::test]
    async fn a_bootstrap_token_may_do_everything() {
        let registry = Registry::open("memory://", &Prefix::default()).await.unwrap();
        let text = "b".repeat(40);
        let tokens = Tokens::new(registry, std::slice::from_ref(&text), false).await.unwrap();
        assert_eq!(tokens.caller(None).await.unwrap_err().status, 401);
        let caller = tokens.caller(Some(text.as_bytes())).await.unwrap();
        assert!(Scope::ALL.into_iter().all(|scope| caller.may(scope).is_ok()));
    }
}
