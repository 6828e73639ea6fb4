use alloc::vec;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

/// A sorted set for what is few, such as queues and shards.
#[derive(Serialize, Deserialize)]
#[serde(transparent, bound(deserialize = "K: Ord + Deserialize<'de>"))]
pub(super) struct Set<K>(LiteMap<K, ()>);

impl<K> Default for Set<K> {
    fn default() -> Set<K> {
        Set(LiteMap::new_vec())
    }
}

impl<K: Ord> Set<K> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn insert(&mut self, key: K) {
        self.0.insert(key, ());
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.0.remove(key);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, ())| key)
    }
}

impl<K: Ord> Extend<K> for Set<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| self.insert(key));
    }
}

impl<K: Ord> FromIterator<K> for Set<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Set<K> {
        let mut set = Set::default();
        set.extend(keys);
        set
    }
}

impl<K> IntoIterator for Set<K> {
    type Item = K;
    type IntoIter = core::iter::Map<vec::IntoIter<(K, ())>, fn((K, ())) -> K>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_tuple_vec().into_iter().map(|(key, ())| key)
    }
}
