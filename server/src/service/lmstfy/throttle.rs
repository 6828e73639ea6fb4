use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::target::Action;
use crate::service::registry::{Kind, Registry, RegistryError};

/// With so many windows, those that have ended are looked for before another begins.
const SWEPT_AT: usize = 1_024;
/// A window is never longer, whatever its limiter says: a year.
const LONGEST_SECONDS: u64 = 365 * 86_400;

/// How many requests of a token there may be in each interval; 0 or less is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Limiter {
    /// Consumes.
    pub(super) read: i64,
    /// Publishes.
    pub(super) write: i64,
    /// How many seconds it is.
    pub(super) interval: i64,
}

/// What was asked for by tokens that have a limit, in this process.
#[derive(Default)]
pub(super) struct Throttle(Mutex<HashMap<(String, Action), Window>>);

/// A window begins with its first request.
struct Window {
    ends: Instant,
    requests: u64,
}

/// A request that counts; one that came to nothing, as when it is dropped unkept, does not.
pub(super) struct Ticket {
    throttle: Arc<Throttle>,
    window: (String, Action),
    ends: Instant,
    is_kept: bool,
}

/// The token has asked as often as it may.
#[derive(Debug)]
pub(super) struct Reached;

/// The limiter of the token that is kept under this name, if it has one.
pub(super) async fn limiter(registry: &Arc<Registry>, token: &str) -> Result<Option<Limiter>, RegistryError> {
    Ok(registry.current().await?.get(Kind::LmstfyLimit, token))
}

impl Throttle {
    pub(super) fn enter(
        self: &Arc<Throttle>,
        token: String,
        action: Action,
        limiter: Limiter,
    ) -> Result<Option<Ticket>, Reached> {
        let most = match action {
            Action::Consume => limiter.read,
            Action::Produce => limiter.write,
        };
        let Some(most) = u64::try_from(most).ok().filter(|most| *most > 0) else { return Ok(None) };
        let seconds = u64::try_from(limiter.interval).unwrap_or(1).clamp(1, LONGEST_SECONDS);
        let (now, key) = (Instant::now(), (token, action));
        let mut windows = self.windows();
        if windows.len() >= SWEPT_AT && !windows.contains_key(&key) {
            windows.retain(|_, window| window.ends > now);
        }
        let begun = || Window { ends: now + Duration::from_secs(seconds), requests: 0 };
        let window = windows.entry(key.clone()).or_insert_with(begun);
        if window.ends <= now {
            *window = begun();
        }
        if window.requests >= most {
            return Err(Reached);
        }
        window.requests += 1;
        let ends = window.ends;
        drop(windows);
        Ok(Some(Ticket { throttle: Arc::clone(self), window: key, ends, is_kept: false }))
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<(String, Action), Window>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Some(window) = self.throttle.windows().get_mut(&self.window)
            && window.ends == self.ends
        {
            window.requests = window.requests.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(throttle: &Arc<Throttle>, token: &str, action: Action) -> Result<Option<Ticket>, Reached> {
        throttle.enter(token.to_owned(), action, Limiter { read: 2, write: 0, interval: 3_600 })
    }

    #[test]
    fn requests_count_by_token_and_action_unless_they_come_to_nothing() {
        let throttle = Arc::default();
        for _ in 0..5 {
            drop(enter(&throttle, "a", Action::Consume).unwrap());
        }
        for _ in 0..2 {
            enter(&throttle, "a", Action::Consume).unwrap().unwrap().keep();
        }
        assert!(enter(&throttle, "a", Action::Consume).is_err());
        assert!(enter(&throttle, "a", Action::Produce).unwrap().is_none());
        assert!(enter(&throttle, "b", Action::Consume).unwrap().is_some());
    }

    #[test]
    fn a_window_that_has_ended_is_followed_by_another() {
        let throttle: Arc<Throttle> = Arc::default();
        let late = enter(&throttle, "a", Action::Consume).unwrap().unwrap();
        enter(&throttle, "a", Action::Consume).unwrap().unwrap().keep();
        let key = ("a".to_owned(), Action::Consume);
        throttle.windows().get_mut(&key).unwrap().ends = Instant::now();
        enter(&throttle, "a", Action::Consume).unwrap().unwrap().keep();
        // It is of the window before.
        drop(late);
        assert_eq!(throttle.windows()[&key].requests, 1);
    }
}
