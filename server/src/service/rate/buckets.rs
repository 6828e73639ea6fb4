use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::{Bucket, Exceeded, RateLimit};

/// A bucket for each of many clients. There are at most so many: beyond that, the half that have used least are forgotten,
/// which is as if they had used nothing.
pub(crate) struct Buckets<K> {
    buckets: Mutex<HashMap<K, Bucket>>,
    most: usize,
}

impl<K: Hash + Eq> Buckets<K> {
    /// Room for `most` clients, 1 at least.
    pub(crate) fn new(most: usize) -> Buckets<K> {
        Buckets { buckets: Mutex::default(), most: most.max(1) }
    }

    /// Uses `amount` of what a client may, or nothing.
    pub(crate) fn take(&self, client: K, limit: RateLimit, amount: u64) -> Result<(), Exceeded> {
        self.take_at(client, limit, amount, Instant::now())
    }

    /// Uses `amount` of what a client may, even if there is less left.
    pub(crate) fn charge(&self, client: K, limit: RateLimit, amount: u64) {
        let now = Instant::now();
        self.with_bucket(client, now, |bucket| bucket.charge(limit, amount, now));
    }

    fn take_at(&self, client: K, limit: RateLimit, amount: u64, now: Instant) -> Result<(), Exceeded> {
        self.with_bucket(client, now, |bucket| bucket.take(limit, amount, now))
    }

    fn with_bucket<T>(&self, client: K, now: Instant, change: impl FnOnce(&mut Bucket) -> T) -> T {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= self.most && !buckets.contains_key(&client) {
            forget(&mut buckets, now);
        }
        change(buckets.entry(client).or_default())
    }
}

/// Forgets those that are full again; if these are fewer than half, those that are full again before the others. Then as
/// many may come anew before this is needed again: it costs each of them little.
fn forget<K: Hash + Eq>(buckets: &mut HashMap<K, Bucket>, now: Instant) {
    let mut full_at: Vec<Instant> = buckets.values().filter_map(Bucket::full_at).collect();
    let middle = full_at.len() / 2;
    let until = if full_at.is_empty() { now } else { now.max(*full_at.select_nth_unstable(middle).1) };
    buckets.retain(|_, bucket| bucket.full_at().is_some_and(|full_at| full_at > until));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_client_has_a_bucket_of_its_own() {
        let (buckets, limit, now) = (Buckets::new(10), "1/s".parse().unwrap(), Instant::now());
        assert_eq!(buckets.take_at("a", limit, 1, now), Ok(()));
        assert!(buckets.take_at("a", limit, 1, now).is_err());
        assert_eq!(buckets.take_at("b", limit, 1, now), Ok(()));
    }

    #[test]
    fn there_are_never_more_than_may_be_and_the_busiest_stay() {
        let (buckets, limit, now) = (Buckets::new(100), "1/s burst 10".parse().unwrap(), Instant::now());
        assert_eq!(buckets.take_at(0, limit, 10, now), Ok(()));
        for client in 1..10_000_u64 {
            assert_eq!(buckets.take_at(client, limit, 1, now), Ok(()));
            assert!(buckets.buckets.lock().unwrap().len() <= 100);
        }
        assert!(buckets.take_at(0, limit, 1, now).is_err(), "the busiest was forgotten");
    }

    #[test]
    fn who_is_full_again_is_forgotten_first() {
        let (buckets, limit, now) = (Buckets::new(3), "1/s".parse().unwrap(), Instant::now());
        assert_eq!(buckets.take_at(1, limit, 1, now), Ok(()));
        assert_eq!(buckets.take_at(2, limit, 1, now), Ok(()));
        let later = now + Duration::from_millis(1_500);
        assert_eq!(buckets.take_at(3, limit, 1, later), Ok(()));
        assert_eq!(buckets.take_at(4, limit, 1, later), Ok(()));
        assert!(buckets.take_at(3, limit, 1, later).is_err());
        assert_eq!(buckets.buckets.lock().unwrap().len(), 2);
    }
}
