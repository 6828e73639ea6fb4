use alloc::vec::Vec;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{DUE, Entry, LEVELS, NONE, SLOTS, Slot, Wheel};

/// The slots that are not empty, by their place.
type Occupied = Vec<(u16, Slot)>;

impl<T: Serialize> Serialize for Wheel<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let slots: Occupied = (0..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.head != NONE)
            .map(|(at, slot)| (at, *slot))
            .collect();
        (self.reached, self.latest, slots, &self.entries, self.free, self.serial).serialize(serializer)
    }
}

/// What is read is a wheel, or refused: no link leads out of it, none in a circle.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Wheel<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Wheel<T>, D::Error> {
        type Saved<T> = (u64, u64, Occupied, Vec<Entry<T>>, u32, u64);
        let (reached, latest, occupied, entries, free, serial) = Saved::deserialize(deserializer)?;
        let mut wheel = Wheel {
            reached,
            latest,
            occupied: [0; LEVELS],
            slots: Vec::new(),
            entries,
            free,
            len: 0,
            serial,
        };
        if !wheel.entries.is_empty() {
            wheel.slots.resize(DUE + 1, Slot::EMPTY);
        }
        wheel
            .fill(occupied)
            .filter(|()| wheel.is_whole())
            .ok_or_else(|| D::Error::custom("no wheel of timers"))?;
        Ok(wheel)
    }
}

impl<T> Wheel<T> {
    fn fill(&mut self, occupied: Occupied) -> Option<()> {
        for (place, slot) in occupied {
            let place = usize::from(place);
            let empty = self.slots.get_mut(place).filter(|empty| empty.head == NONE)?;
            *empty = slot;
            if place != DUE {
                self.occupied[place / SLOTS] |= 1 << (place % SLOTS);
            }
            self.len += self.chained(place)?;
        }
        Some(())
    }

    /// How many entries a slot holds, if their links fit together.
    fn chained(&self, place: usize) -> Option<usize> {
        let slot = self.slots.get(place)?;
        if self.slot_of(slot.earliest) != place {
            return None;
        }
        let (mut before, mut index, mut count) = (NONE, slot.head, 0);
        while index != NONE {
            let entry = self.entries.get(usize::try_from(index).ok()?)?;
            count += 1;
            if usize::from(entry.slot) != place
                || entry.prev != before
                || entry.value.is_none()
                || entry.deadline < slot.earliest
                || self.slot_of(entry.deadline) != place
                || count > self.entries.len()
            {
                return None;
            }
            (before, index) = (index, entry.next);
        }
        (slot.tail == before && count > 0).then_some(count)
    }

    /// Whether every entry is in a slot or free.
    fn is_whole(&self) -> bool {
        let (mut index, mut free) = (self.free, 0);
        while let Some(entry) = self.entries.get(index as usize).filter(|_| index != NONE) {
            free += 1;
            if entry.value.is_some() || free > self.entries.len() {
                return false;
            }
            index = entry.next;
        }
        index == NONE && self.len + free == self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Millis;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_saved_goes_on_as_it_would_have(
            deadlines in prop::collection::vec(0..100_000u64, 0..60),
            cancelled in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            pops in prop::collection::vec(0..20_000u64, 0..10),
        ) {
            let mut wheel = Wheel::new(Millis(7));
            let keys: Vec<_> = deadlines.iter().map(|at| wheel.insert(Millis(*at), *at)).collect();
            for index in cancelled.iter().filter(|_| !keys.is_empty()) {
                wheel.cancel(keys[index.index(keys.len())]);
            }
            let mut now = 0;
            for step in pops {
                now += step;
                wheel.pop_expired(Millis(now));
            }
            let saved = postcard::to_allocvec(&wheel).unwrap();
            let mut read: Wheel<u64> = postcard::from_bytes(&saved).unwrap();
            prop_assert_eq!(read.len(), wheel.len());
            while !wheel.is_empty() {
                prop_assert_eq!(read.next_expiry(), wheel.next_expiry());
                let at = wheel.next_expiry().unwrap();
                prop_assert_eq!(read.pop_expired(at), wheel.pop_expired(at));
                prop_assert_eq!(read.insert(at + 50_000, 1), wheel.insert(at + 50_000, 1));
                let (a, b) = (wheel.pop_expired(at + 1), read.pop_expired(at + 1));
                prop_assert_eq!(a, b);
                if at.0 > 300_000 {
                    break;
                }
            }
        }

        #[test]
        fn any_bytes_are_a_wheel_that_works_or_refused(mut bytes: Vec<u8>, flip: prop::sample::Index, to: u8) {
            let mut wheel = Wheel::new(Millis(0));
            for at in 0..9 {
                wheel.insert(Millis(at * 100), at);
            }
            let mut saved = postcard::to_allocvec(&wheel).unwrap();
            let at = flip.index(saved.len());
            saved[at] = to;
            for bytes in [&mut bytes, &mut saved] {
                if let Ok(mut wheel) = postcard::from_bytes::<Wheel<u64>>(bytes) {
                    wheel.insert(Millis(1), 1);
                    while wheel.pop_expired(Millis(u64::MAX)).is_some() {}
                    prop_assert!(wheel.is_empty());
                }
            }
        }
    }
}
