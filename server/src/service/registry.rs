//! What the services of a deployment share beside its jobs: tokens, ceilings of namespaces, which queues are pushed.
//!
//! It is one hash, `{prefix}:registry`, whose field `version` grows with each change. An instance that is asked looks at the
//! version if it has not for [`FRESH`], and reads the hash again when it has changed: an idle one asks Redis for nothing.
//! What changes often and is read seldom stands in `{prefix}:registry:notes`, which has no version. In memory both are maps.

mod entries;
mod redis;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use delayline_http::Problem;
use delayline_tokio::Prefix;
use serde::Serialize;
use thiserror::Error;

pub(crate) use self::entries::{Entries, Kind};

use self::entries::VERSION;
use self::redis::Redis;

/// For how long what was read is not read again.
const FRESH: Duration = Duration::from_secs(2);
/// For how long what was read counts as what is there, while it is read again. A revoked token is refused after that time
/// at the latest.
const CURRENT: Duration = Duration::from_secs(5);
/// For how long a failure to read answers whoever asks next, so that callers do not wait for Redis one after the other.
const FAILED: Duration = Duration::from_millis(500);
/// The most entries, and the most bytes of one: each instance keeps all of them in memory.
const MOST_ENTRIES: usize = 10_000;
const MOST_BYTES: usize = 8 << 10;

/// The registry as this process knows it.
pub(crate) struct Registry {
    store: Store,
    known: Mutex<Known>,
    /// Held by whoever reads; the latest failure.
    reading: tokio::sync::Mutex<Option<(Instant, RegistryError)>>,
}

enum Store {
    Redis(Redis),
    Memory(Mutex<Maps>),
}

#[derive(Default)]
struct Maps {
    entries: BTreeMap<String, String>,
    notes: BTreeMap<String, String>,
}

struct Known {
    entries: Arc<Entries>,
    at: Instant,
}

/// Why the registry was not read, or not changed.
#[derive(Clone, Debug, Error)]
pub(crate) enum RegistryError {
    /// No connection could be made: nothing was changed.
    #[error("{address} cannot be reached: {why}")]
    Unreachable { address: String, why: String },
    /// The answer did not come: what was to be changed may have been.
    #[error("{address} did not answer: {why}")]
    Unknown { address: String, why: String },
    /// Redis refused.
    #[error("Redis refused: {0}")]
    Refused(String),
    /// There are too many entries.
    #[error(
        "there are {MOST_ENTRIES} entries of the registry, and more may not be: remove tokens that nobody uses"
    )]
    Full,
    /// One entry is too large.
    #[error("the entry has {0} bytes, and may have {MOST_BYTES}: give shorter texts, or fewer of them")]
    TooLarge(usize),
}

impl Registry {
    /// Reads the registry of a deployment at this URL; `memory://` has one in this process.
    pub(crate) async fn open(url: &str, prefix: &Prefix) -> Result<Arc<Registry>, RegistryError> {
        let store = if url.starts_with("memory:") {
            Store::Memory(Mutex::default())
        } else {
            Store::Redis(Redis::new(url, prefix)?)
        };
        let known = Known { entries: Arc::default(), at: Instant::now() };
        let registry = Registry { store, known: Mutex::new(known), reading: tokio::sync::Mutex::default() };
        registry.look().await?;
        Ok(Arc::new(registry))
    }

    /// What is there, or was at most [`CURRENT`] ago.
    pub(crate) async fn current(self: &Arc<Registry>) -> Result<Arc<Entries>, RegistryError> {
        if self.known().at.elapsed() >= CURRENT {
            self.look_once().await?;
        }
        Ok(self.latest())
    }

    /// What is known, however old; if it is not fresh it is read again beside whoever asks.
    pub(crate) fn latest(self: &Arc<Registry>) -> Arc<Entries> {
        if self.known().at.elapsed() >= FRESH && self.reading.try_lock().is_ok() {
            let registry = Arc::clone(self);
            tokio::spawn(async move { registry.look_once().await });
        }
        self.known_entries()
    }

    /// Looks, unless somebody else has just done so.
    async fn look_once(&self) -> Result<(), RegistryError> {
        let mut failed = self.reading.lock().await;
        if self.known().at.elapsed() < FRESH {
            return Ok(());
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < FAILED
        {
            return Err(error.clone());
        }
        let looked = self.look().await;
        *failed = looked.as_ref().err().map(|error| (Instant::now(), error.clone()));
        looked
    }

    fn known_entries(&self) -> Arc<Entries> {
        Arc::clone(&self.known().entries)
    }

    /// Puts an entry in, in place of one of its name.
    pub(crate) async fn put(
        &self,
        kind: Kind,
        name: &str,
        entry: &impl Serialize,
    ) -> Result<(), RegistryError> {
        self.write(kind, name, entry, true).await.map(|_| ())
    }

    /// Puts an entry in unless there is one of its name; answers whether there was none.
    pub(crate) async fn put_new(
        &self,
        kind: Kind,
        name: &str,
        entry: &impl Serialize,
    ) -> Result<bool, RegistryError> {
        self.write(kind, name, entry, false).await
    }

    async fn write(
        &self,
        kind: Kind,
        name: &str,
        entry: &impl Serialize,
        replaces: bool,
    ) -> Result<bool, RegistryError> {
        let field = kind.field(name);
        let text = serde_json::to_string(entry).unwrap_or_default();
        if field.len() + text.len() > MOST_BYTES {
            return Err(RegistryError::TooLarge(field.len() + text.len()));
        }
        let known = self.known_entries();
        if known.len() >= MOST_ENTRIES && !known.contains(kind, name) {
            return Err(RegistryError::Full);
        }
        let is_put = self.store.put(&field, text, replaces).await?;
        self.look().await?;
        Ok(is_put)
    }

    /// Removes an entry and its note; answers whether it was there.
    pub(crate) async fn remove(&self, kind: Kind, name: &str) -> Result<bool, RegistryError> {
        let was_there = self.store.remove(&kind.field(name)).await?;
        self.look().await?;
        Ok(was_there)
    }

    /// Keeps a short text that changes often: no instance is told of the change.
    pub(crate) async fn note(&self, notes: &[(Kind, &str, String)]) -> Result<(), RegistryError> {
        let notes = notes.iter().map(|(kind, name, text)| (kind.field(name), text.clone()));
        self.store.note(notes.collect()).await
    }

    /// The texts that were kept under these names, in their order.
    pub(crate) async fn notes(
        &self,
        kind: Kind,
        names: &[&str],
    ) -> Result<Vec<Option<String>>, RegistryError> {
        self.store.notes(names.iter().map(|name| kind.field(name)).collect()).await
    }

    /// Reads what others have changed, if they have.
    async fn look(&self) -> Result<(), RegistryError> {
        let (before, begun) = (self.known_entries(), Instant::now());
        let changed = self.store.read(&before).await?;
        let mut known = self.known();
        if begun >= known.at {
            known.at = begun;
            if let Some(entries) = changed {
                known.entries = Arc::new(entries);
            }
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    async fn put(&self, field: &str, text: String, replaces: bool) -> Result<bool, RegistryError> {
        match self {
            Store::Redis(redis) => redis.put(field, &text, replaces).await,
            Store::Memory(maps) => {
                let mut maps = locked(maps);
                let may = replaces || !maps.entries.contains_key(field);
                if may {
                    maps.entries.insert(field.to_owned(), text);
                    maps.changed();
                }
                Ok(may)
            }
        }
    }

    async fn remove(&self, field: &str) -> Result<bool, RegistryError> {
        match self {
            Store::Redis(redis) => redis.remove(field).await,
            Store::Memory(maps) => {
                let mut maps = locked(maps);
                let was_there = maps.entries.remove(field).is_some();
                maps.notes.remove(field);
                maps.changed();
                Ok(was_there)
            }
        }
    }

    /// All entries, if there was a change since `known`.
    async fn read(&self, known: &Entries) -> Result<Option<Entries>, RegistryError> {
        match self {
            Store::Redis(redis) => redis.read(known.version()).await.map(|read| read.map(Entries::new)),
            Store::Memory(maps) => {
                let entries = &locked(maps).entries;
                let is_known = entries.get(VERSION).map(String::as_str) == known.version();
                Ok((!is_known).then(|| Entries::new(entries.clone())))
            }
        }
    }

    async fn note(&self, notes: Vec<(String, String)>) -> Result<(), RegistryError> {
        match self {
            Store::Redis(redis) => redis.note(notes).await,
            Store::Memory(maps) => {
                locked(maps).notes.extend(notes);
                Ok(())
            }
        }
    }

    async fn notes(&self, fields: Vec<String>) -> Result<Vec<Option<String>>, RegistryError> {
        match self {
            Store::Redis(redis) => redis.notes(fields).await,
            Store::Memory(maps) => {
                let notes = &locked(maps).notes;
                Ok(fields.iter().map(|field| notes.get(field).cloned()).collect())
            }
        }
    }
}

impl Maps {
    fn changed(&mut self) {
        let version = self.entries.get(VERSION).and_then(|version| version.parse::<u64>().ok());
        self.entries.insert(VERSION.to_owned(), (version.unwrap_or(0) + 1).to_string());
    }
}

fn locked(maps: &Mutex<Maps>) -> MutexGuard<'_, Maps> {
    maps.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Problem {
        match error {
            RegistryError::Unreachable { .. } => Problem::not_sent(error),
            RegistryError::Unknown { .. } => Problem::unknown(format!(
                "{error}; the change may or may not have been made: repeat it to be sure"
            )),
            RegistryError::Refused(_) => Problem::later("refused", error),
            RegistryError::Full => Problem::conflict("registry_full", error),
            RegistryError::TooLarge(_) => Problem::too_large("entry_too_large", error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn in_memory_an_entry_is_put_read_and_removed() {
        let registry = Registry::open("memory://", &Prefix::default()).await.unwrap();
        assert!(registry.put_new(Kind::Namespace, "shop", &5).await.unwrap());
        assert!(!registry.put_new(Kind::Namespace, "shop", &6).await.unwrap());
        assert_eq!(registry.current().await.unwrap().get::<u8>(Kind::Namespace, "shop"), Some(5));
        registry.put(Kind::Namespace, "shop", &7).await.unwrap();
        assert_eq!(registry.current().await.unwrap().get::<u8>(Kind::Namespace, "shop"), Some(7));
        assert_eq!(registry.current().await.unwrap().get::<u8>(Kind::Token, "shop"), None);
        assert!(registry.remove(Kind::Namespace, "shop").await.unwrap());
        assert!(!registry.remove(Kind::Namespace, "shop").await.unwrap());
        assert_eq!(registry.current().await.unwrap().all::<u8>(Kind::Namespace).count(), 0);
        registry.note(&[(Kind::Token, "a", "1".into())]).await.unwrap();
        let notes = registry.notes(Kind::Token, &["b", "a"]).await.unwrap();
        assert_eq!(notes, [None, Some("1".to_owned())]);
        assert_eq!(registry.current().await.unwrap().all::<u8>(Kind::Token).count(), 0);
    }

    #[tokio::test]
    async fn an_entry_that_is_too_large_is_refused() {
        let registry = Registry::open("memory://", &Prefix::default()).await.unwrap();
        let refused = registry.put(Kind::Token, "a", &"x".repeat(MOST_BYTES)).await.unwrap_err();
        assert!(matches!(refused, RegistryError::TooLarge(_)));
        assert_eq!(registry.current().await.unwrap().len(), 0);
    }
}
