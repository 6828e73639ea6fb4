use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A sorted map for what mostly comes and goes in order, as what is numbered does: both ends are cheap, and it is far
/// less code than a B-tree.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Window<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for Window<K, V> {
    fn default() -> Window<K, V> {
        Window(VecDeque::new())
    }
}

impl<K: Ord, V> Window<K, V> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.place(key).is_ok()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let place = self.place(key).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key).ok()?;
        self.0.get_mut(place).map(|(_, value)| value)
    }

    /// The value takes the place of one of the same key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self.place(&key) {
            Ok(place) => self.0[place] = (key, value),
            Err(place) => self.0.insert(place, (key, value)),
        }
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.place(key).ok()?;
        self.0.remove(place).map(|(_, value)| value)
    }

    /// The one with so many before it.
    pub(super) fn at(&self, place: usize) -> Option<&(K, V)> {
        self.0.get(place)
    }

    /// The one of the lowest key.
    pub(super) fn first(&self) -> Option<&(K, V)> {
        self.0.front()
    }

    pub(super) fn pop_first(&mut self) -> Option<(K, V)> {
        self.0.pop_front()
    }

    pub(super) fn retain(&mut self, mut keeps: impl FnMut(&K, &V) -> bool) {
        self.0.retain(|(key, value)| keeps(key, value));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    fn place(&self, key: &K) -> Result<usize, usize> {
        match self.0.back() {
            Some((last, _)) if last < key => Err(self.0.len()),
            _ => self.0.binary_search_by(|(have, _)| have.cmp(key)),
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Window<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Window<K, V> {
        let mut window = Window::default();
        pairs.into_iter().for_each(|(key, value)| window.insert(key, value));
        window
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map_in_order(steps: Vec<(u8, Option<u16>)>) {
            let (mut window, mut map) = (Window::default(), BTreeMap::new());
            for (key, step) in steps {
                if let Some(value) = step {
                    window.insert(key, value);
                    map.insert(key, value);
                } else {
                    prop_assert_eq!(window.remove(&key), map.remove(&key));
                }
                prop_assert_eq!(window.get(&key), map.get(&key));
                prop_assert_eq!(window.get_mut(&key), map.get_mut(&key));
                prop_assert_eq!(window.contains(&key), map.contains_key(&key));
                prop_assert_eq!(window.first().copied(), map.first_key_value().map(|(key, value)| (*key, *value)));
                prop_assert!(window.values().eq(map.values()));
                prop_assert_eq!((window.len(), window.is_empty()), (map.len(), map.is_empty()));
            }
            while let Some(first) = map.pop_first() {
                prop_assert_eq!(window.pop_first(), Some(first));
            }
            prop_assert_eq!(window.pop_first(), None);
        }
    }
}
