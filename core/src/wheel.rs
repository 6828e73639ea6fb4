mod saved;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Millis;

const DIGIT_BITS: usize = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LAST_DIGIT: u64 = 63;
const LEVELS: usize = 11;
const DUE: usize = LEVELS * SLOTS;
const NONE: u32 = u32::MAX;

/// Timers in a hierarchical timing wheel: what falls due first comes out first, and equal deadlines come out in the
/// order they went in.
///
/// Eleven levels of 64 slots span the whole of `u64` milliseconds, so there is no overflow list and no wrap. Each level
/// has a word that says which slots are occupied, so a jump of the clock costs only the entries it passes, never the
/// time. An empty wheel that was never used holds no memory.
///
/// The hop from slot to slot is that of tokio's wheel (`runtime/time/wheel`); the hierarchy is scheme 7 of Varghese and
/// Lauck, "Hashed and Hierarchical Timing Wheels" (1987).
#[derive(Clone, Debug)]
pub struct Wheel<T> {
    /// Every slot's entries lie after this time; what lies at or before it is in the slot `DUE`.
    reached: u64,
    latest: u64,
    occupied: [u64; LEVELS],
    slots: Vec<Slot>,
    entries: Vec<Entry<T>>,
    free: u32,
    len: usize,
    serial: u64,
}

/// Names one entry of one [`Wheel`]; never used again, so a key kept too long names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    index: u32,
    serial: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    head: u32,
    tail: u32,
    earliest: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry<T> {
    deadline: u64,
    serial: u64,
    prev: u32,
    next: u32,
    slot: u16,
    value: Option<T>,
}

impl Slot {
    const EMPTY: Slot = Slot { head: NONE, tail: NONE, earliest: u64::MAX };
}

impl<T> Wheel<T> {
    /// An empty wheel whose clock stands at `now`. Allocates nothing.
    pub fn new(now: Millis) -> Wheel<T> {
        Wheel {
            reached: now.0,
            latest: now.0,
            occupied: [0; LEVELS],
            slots: Vec::new(),
            entries: Vec::new(),
            free: NONE,
            len: 0,
            serial: 0,
        }
    }

    /// How many entries wait, overdue ones included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no entry waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry in O(1); one whose deadline has passed is overdue at once and takes its place among the overdue.
    ///
    /// # Panics
    ///
    /// When 2³² − 1 entries wait already.
    pub fn insert(&mut self, deadline: Millis, value: T) -> Key {
        if self.slots.is_empty() {
            self.slots.resize(DUE + 1, Slot::EMPTY);
        }
        self.serial += 1;
        let entry = Entry {
            deadline: deadline.0,
            serial: self.serial,
            prev: NONE,
            next: NONE,
            slot: 0,
            value: Some(value),
        };
        let index = self.store(entry);
        self.len += 1;
        self.place(index);
        Key { index, serial: self.serial }
    }

    /// Takes an entry out in O(1); `None` if it has fired or was cancelled.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        self.remove(key.index).map(|(_, value)| value)
    }

    /// The deadline and value of an entry; `None` if it has fired or was cancelled.
    pub fn get(&self, key: Key) -> Option<(Millis, &T)> {
        let entry = self.entries.get(key.index as usize).filter(|entry| entry.serial == key.serial)?;
        entry.value.as_ref().map(|value| (Millis(entry.deadline), value))
    }

    /// When to call [`pop_expired`](Wheel::pop_expired) next, in O(1); `None` if nothing waits.
    ///
    /// Never later than the first deadline, and equal to it unless a neighbour of that entry was cancelled: then it may
    /// be too early, once for each such neighbourhood.
    pub fn next_expiry(&self) -> Option<Millis> {
        self.entries
            .get(self.head(DUE) as usize)
            .map(|entry| entry.deadline)
            .or_else(|| self.first_slot().map(|(slot, _)| self.slots[slot].earliest))
            .map(Millis)
    }

    /// When to call [`pop_expired`](Wheel::pop_expired) next, with an entry that waits for that time or one close by.
    pub fn next(&self) -> Option<(Millis, &T)> {
        let due = self.head(DUE);
        let first = if due == NONE { self.slots[self.first_slot()?.0].head } else { due };
        Some((self.next_expiry()?, self.entries.get(first as usize)?.value.as_ref()?))
    }

    /// Takes out the first entry in the order of (deadline, insertion) if its deadline is at or before `now`.
    ///
    /// A `now` before one given earlier counts as that one. `None` means that nothing is due: call until then, or stop
    /// in between, and the rest stays due.
    pub fn pop_expired(&mut self, now: Millis) -> Option<(Millis, T)> {
        self.latest = self.latest.max(now.0);
        loop {
            let due = self.head(DUE);
            if due != NONE {
                return self.remove(due);
            }
            match self.first_slot() {
                Some((slot, start)) if start <= self.latest => self.hop(slot, start),
                _ => {
                    self.reached = self.latest;
                    return None;
                }
            }
        }
    }

    fn head(&self, slot: usize) -> u32 {
        self.slots.get(slot).map_or(NONE, |slot| slot.head)
    }

    /// The slot that holds the earliest entry after `reached`, and the time at which it begins.
    fn first_slot(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|&word| word != 0)?;
        let slot = level * SLOTS + self.occupied[level].trailing_zeros() as usize;
        let low = DIGIT_BITS * level;
        Some((slot, self.slots[slot].earliest >> low << low))
    }

    /// Moves the clock to the start of the first slot and its entries, in order, to where they now belong.
    fn hop(&mut self, slot: usize, start: u64) {
        debug_assert!(self.reached < start && start <= self.latest);
        self.reached = start;
        self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        let mut index = core::mem::replace(&mut self.slots[slot], Slot::EMPTY).head;
        while index != NONE {
            let next = self.entries[index as usize].next;
            self.place(index);
            index = next;
        }
    }

    fn place(&mut self, index: u32) {
        let deadline = self.entries[index as usize].deadline;
        if deadline <= self.reached {
            let mut before = self.slots[DUE].tail;
            while before != NONE && self.entries[before as usize].deadline > deadline {
                before = self.entries[before as usize].prev;
            }
            self.link(index, DUE, before);
        } else {
            let slot = self.slot_of(deadline);
            self.occupied[slot / SLOTS] |= 1 << (slot % SLOTS);
            self.link(index, slot, self.slots[slot].tail);
        }
    }

    /// Where a deadline belongs.
    fn slot_of(&self, deadline: u64) -> usize {
        if deadline <= self.reached {
            return DUE;
        }
        let level = ((self.reached ^ deadline) | LAST_DIGIT).ilog2() as usize / DIGIT_BITS;
        let digit = usize::try_from(deadline >> (DIGIT_BITS * level) & LAST_DIGIT).unwrap_or(0);
        level * SLOTS + digit
    }

    fn link(&mut self, index: u32, slot: usize, before: u32) {
        let after = if before == NONE { self.slots[slot].head } else { self.entries[before as usize].next };
        self.join(slot, before, index);
        self.join(slot, index, after);
        let entry = &mut self.entries[index as usize];
        entry.slot = u16::try_from(slot).unwrap_or(u16::MAX);
        self.slots[slot].earliest = self.slots[slot].earliest.min(entry.deadline);
    }

    fn join(&mut self, slot: usize, before: u32, after: u32) {
        match before {
            NONE => self.slots[slot].head = after,
            _ => self.entries[before as usize].next = after,
        }
        match after {
            NONE => self.slots[slot].tail = before,
            _ => self.entries[after as usize].prev = before,
        }
    }

    fn remove(&mut self, index: u32) -> Option<(Millis, T)> {
        let entry = &mut self.entries[index as usize];
        let value = entry.value.take()?;
        let (deadline, slot, prev, next) = (entry.deadline, usize::from(entry.slot), entry.prev, entry.next);
        self.join(slot, prev, next);
        if self.slots[slot].head == NONE {
            self.slots[slot] = Slot::EMPTY;
            if slot != DUE {
                self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
            }
        }
        self.entries[index as usize].next = self.free;
        self.free = index;
        self.len -= 1;
        Some((Millis(deadline), value))
    }

    fn store(&mut self, entry: Entry<T>) -> u32 {
        if self.free == NONE {
            let index = u32::try_from(self.entries.len()).unwrap_or(NONE);
            assert!(index != NONE, "a wheel holds at most 4,294,967,295 entries");
            self.entries.push(entry);
            index
        } else {
            let index = self.free;
            self.free = self.entries[index as usize].next;
            self.entries[index as usize] = entry;
            index
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const CENTURY: u64 = 100 * 365 * 86_400_000;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(i64),
        Absolute(u64),
        Cancel(usize),
        Pop(usize),
        Advance(u64),
        Back(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let delay = prop_oneof![
            4 => 0..200i64,
            4 => -300..5_000i64,
            2 => 0..100_000_000i64,
            1 => Just(i64::MAX),
        ];
        let advance =
            prop_oneof![6 => 0..100u64, 3 => 0..10_000u64, 1 => 0..50_000_000u64, 1 => Just(CENTURY)];
        let step = prop_oneof![
            8 => delay.prop_map(Step::Insert),
            1 => prop_oneof![Just(u64::MAX), Just(0), any::<u64>()].prop_map(Step::Absolute),
            3 => any::<usize>().prop_map(Step::Cancel),
            4 => (0..8usize).prop_map(Step::Pop),
            3 => advance.prop_map(Step::Advance),
            1 => any::<u64>().prop_map(Step::Back),
        ];
        prop::collection::vec(step, 0..400)
    }

    fn starts() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            0..5_000u64,
            any::<u64>(),
            (0..200_000u64).prop_map(|back| u64::MAX - back),
            (0..70u64).prop_map(|back| (1 << 60) - back),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn agrees_with_an_ordered_map(start in starts(), steps in steps()) {
            let mut wheel = Wheel::new(Millis(start));
            let mut oracle: BTreeMap<(u64, u64), Key> = BTreeMap::new();
            let mut keys: Vec<(u64, u64, Key)> = Vec::new();
            let (mut now, mut latest, mut exact) = (start, start, true);
            for step in steps {
                match step {
                    Step::Insert(_) | Step::Absolute(_) => {
                        let deadline = match step {
                            Step::Insert(delay) => now.saturating_add_signed(delay),
                            Step::Absolute(deadline) => deadline,
                            _ => 0,
                        };
                        let serial = keys.len() as u64;
                        let key = wheel.insert(Millis(deadline), serial);
                        oracle.insert((deadline, serial), key);
                        keys.push((deadline, serial, key));
                    }
                    Step::Cancel(pick) if !keys.is_empty() => {
                        let (deadline, serial, key) = keys[pick % keys.len()];
                        let expected = oracle.remove(&(deadline, serial)).map(|_| serial);
                        exact &= expected.is_none();
                        prop_assert_eq!(wheel.get(key), expected.as_ref().map(|it| (Millis(deadline), it)));
                        prop_assert_eq!(wheel.cancel(key), expected);
                        prop_assert_eq!(wheel.cancel(key), None);
                    }
                    Step::Pop(times) => for _ in 0..=times {
                        latest = latest.max(now);
                        let first = oracle.first_key_value().map(|(&at, _)| at).filter(|at| at.0 <= latest);
                        if let Some(at) = first {
                            oracle.remove(&at);
                        }
                        prop_assert_eq!(wheel.pop_expired(Millis(now)), first.map(|at| (Millis(at.0), at.1)));
                    },
                    Step::Advance(by) => now = now.saturating_add(by),
                    Step::Back(to) => now = now.min(to),
                    Step::Cancel(_) => {}
                }
                let first = oracle.first_key_value().map(|(&(deadline, _), _)| Millis(deadline));
                prop_assert_eq!(wheel.len(), oracle.len());
                prop_assert_eq!(wheel.is_empty(), oracle.is_empty());
                prop_assert_eq!(wheel.next_expiry().is_some(), first.is_some());
                prop_assert!(wheel.next_expiry() <= first);
                prop_assert!(!exact || wheel.next_expiry() == first);
            }
        }
    }

    #[test]
    fn an_unused_wheel_holds_no_memory() {
        let mut wheel = Wheel::<u64>::new(Millis(5));
        assert_eq!((wheel.pop_expired(Millis(CENTURY)), wheel.next_expiry()), (None, None));
        assert_eq!((wheel.slots.capacity(), wheel.entries.capacity()), (0, 0));
    }

    #[test]
    fn a_key_outlives_its_entry_but_never_names_another() {
        let mut wheel = Wheel::new(Millis(0));
        let first = wheel.insert(Millis(10), 'a');
        assert_eq!(wheel.cancel(first), Some('a'));
        let second = wheel.insert(Millis(10), 'b');
        assert_eq!(first.index, second.index);
        assert_eq!((wheel.cancel(first), wheel.get(second)), (None, Some((Millis(10), &'b'))));
    }

    #[test]
    fn early_wakes_after_a_cancel_do_not_repeat() {
        let mut wheel = Wheel::new(Millis(0));
        let near = wheel.insert(Millis(70), 'a');
        wheel.insert(Millis(120), 'b');
        wheel.cancel(near);
        assert_eq!(wheel.next_expiry(), Some(Millis(70)));
        assert_eq!(wheel.pop_expired(Millis(70)), None);
        assert_eq!(wheel.next_expiry(), Some(Millis(120)));
    }

    #[test]
    fn a_stopped_burst_stays_due_and_admits_what_belongs_before_it() {
        let mut wheel = Wheel::new(Millis(0));
        for deadline in [30, 20, 20, 10] {
            wheel.insert(Millis(deadline), deadline);
        }
        assert_eq!(wheel.pop_expired(Millis(CENTURY)), Some((Millis(10), 10)));
        wheel.insert(Millis(5), 5);
        assert_eq!(wheel.next_expiry(), Some(Millis(5)));
        let rest: Vec<u64> = core::iter::from_fn(|| wheel.pop_expired(Millis(0)).map(|(_, it)| it)).collect();
        assert_eq!(rest, [5, 20, 20, 30]);
    }
}
