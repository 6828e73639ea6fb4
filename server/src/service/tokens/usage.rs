use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use delayline_tokio::UnixMs;

use crate::service::registry::{Kind, Registry};

/// How often the use of a token is noted.
const NOTED_EVERY_MS: u64 = 60_000;
/// The most tokens that are remembered: those of a registry fit.
const MOST: usize = 20_000;

/// When each token was last noted to be used.
#[derive(Default)]
pub(super) struct Usage(Mutex<HashMap<String, u64>>);

impl Usage {
    /// A token is used; that is noted beside the request, once a minute.
    pub(super) fn is_used(&self, registry: &Arc<Registry>, id: &str, now: UnixMs) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match noted.get_mut(id) {
            Some(at) if now.0.abs_diff(*at) < NOTED_EVERY_MS => return,
            Some(at) => *at = now.0,
            None => {
                if noted.len() >= MOST {
                    noted.clear();
                }
                noted.insert(id.to_owned(), now.0);
            }
        }
        drop(noted);
        let (registry, id) = (Arc::clone(registry), id.to_owned());
        tokio::spawn(async move {
            let noted = registry.note(&[(Kind::Token, &id, now.0.to_string())]).await;
            if let Err(error) = noted {
                tracing::debug!(%error, "the use of a token cannot be noted");
            }
        });
    }
}
