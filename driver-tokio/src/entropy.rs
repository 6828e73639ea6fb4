use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use delayline_core::{Identity, JobId, JobIds};

use crate::Error;
use crate::store::Store;
use crate::when::unix_ms;

/// Random bits from the operating system.
fn random() -> Result<u64, Error> {
    getrandom::u64().map_err(|error| Error::System { what: "randomness", why: error.to_string() })
}

/// Who a new engine is.
pub(crate) fn identity(store: &Store) -> Result<Identity, Error> {
    draw(store).map(Identity)
}

/// What backoff jitter is drawn from.
pub(crate) fn salt(store: &Store) -> Result<u64, Error> {
    draw(store)
}

/// Random, unless a test holds the time: then the same in each run.
fn draw(store: &Store) -> Result<u64, Error> {
    store.held().map_or_else(random, |time| Ok(time.draw()))
}

/// Draws ids for jobs that were given none.
pub(crate) struct Ids {
    ids: Mutex<JobIds>,
    state: AtomicU64,
}

impl Ids {
    pub(crate) fn new(store: &Store) -> Result<Ids, Error> {
        Ok(Ids { ids: Mutex::default(), state: AtomicU64::new(draw(store)?) })
    }

    pub(crate) fn draw(&self, now: SystemTime) -> JobId {
        let random = self.random();
        let mut ids = self.ids.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        ids.next(unix_ms(now), random)
    }

    /// splitmix64 from a random beginning.
    fn random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
