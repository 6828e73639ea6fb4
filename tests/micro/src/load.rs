use std::hint::black_box;

use delayline_core::{Key, Millis, Wheel};

use crate::Random;

/// The farthest deadline, in milliseconds from now: leases, backoffs and polls lie within an hour.
pub(crate) const HORIZON_MS: u64 = 3_600_000;
/// How far the clock goes between two looks at what is due.
const STEP_MS: u64 = 1_000;

/// Whatever keeps timers.
pub trait Timers {
    /// Names a timer until it has fired.
    type Key;

    /// Adds a timer; no value is used twice.
    fn insert(&mut self, deadline_ms: u64, value: u64) -> Self::Key;
    /// Takes a timer out before it fires, and says whether it was there.
    fn cancel(&mut self, key: Self::Key) -> bool;
    /// When to look next.
    fn next(&self) -> Option<u64>;
    /// Fires what is due, and says how many.
    fn expire(&mut self, now_ms: u64) -> usize;
}

impl Timers for Wheel<u64> {
    type Key = Key;

    fn insert(&mut self, deadline_ms: u64, value: u64) -> Key {
        Wheel::insert(self, Millis(deadline_ms), value)
    }

    fn cancel(&mut self, key: Key) -> bool {
        Wheel::cancel(self, key).is_some()
    }

    fn next(&self) -> Option<u64> {
        self.next_expiry().map(|at| at.0)
    }

    fn expire(&mut self, now_ms: u64) -> usize {
        let mut fired = 0;
        while let Some(entry) = self.pop_expired(Millis(now_ms)) {
            black_box(entry);
            fired += 1;
        }
        fired
    }
}

/// Timers among which some are inserted, cancelled and fired. Two loads of one size meet the same deadlines in the same order,
/// whoever keeps them; what a step needs is prepared before it.
pub struct Load<T: Timers> {
    pub(crate) timers: T,
    /// The timers that wait, in no order.
    keys: Vec<T::Key>,
    /// The deadlines of those that are inserted next.
    deadlines: Vec<u64>,
    /// Those that are cancelled next.
    chosen: Vec<T::Key>,
    random: Random,
    /// How many were ever inserted.
    inserted: u64,
}

impl<T: Timers> Load<T> {
    /// So many timers, due within the hour.
    pub fn new(timers: T, count: usize) -> Load<T> {
        let mut load = Load {
            timers,
            keys: Vec::with_capacity(2 * count),
            deadlines: Vec::new(),
            chosen: Vec::new(),
            random: Random::new(7),
            inserted: 0,
        };
        load.plan(count);
        load.insert(count);
        load
    }

    /// Draws the deadlines of those that [`insert`](Load::insert) adds.
    pub fn plan(&mut self, count: usize) {
        let random = &mut self.random;
        self.deadlines.clear();
        self.deadlines.extend((0..count).map(|_| 1 + random.below(HORIZON_MS)));
    }

    /// Adds so many of the timers that were planned.
    ///
    /// # Panics
    /// If fewer were.
    pub fn insert(&mut self, count: usize) {
        let Load { timers, keys, deadlines, inserted, .. } = self;
        for deadline in deadlines.drain(..count) {
            *inserted += 1;
            keys.push(timers.insert(deadline, *inserted));
        }
    }

    /// Draws those that [`cancel`](Load::cancel) takes out.
    pub fn choose(&mut self, count: usize) {
        self.chosen.clear();
        for _ in 0..count.min(self.keys.len()) {
            let place = self.random.place(self.keys.len());
            self.chosen.push(self.keys.swap_remove(place));
        }
    }

    /// Takes out so many of the timers that were chosen.
    ///
    /// # Panics
    /// If one is not there, or fewer were.
    pub fn cancel(&mut self, count: usize) {
        let Load { timers, chosen, .. } = self;
        assert!(chosen.drain(..count).all(|key| timers.cancel(key)), "a timer is lost");
    }

    /// Asks so many times when to look next.
    ///
    /// # Panics
    /// If nothing waits.
    pub fn next(&self, times: usize) {
        for _ in 0..times {
            assert!(black_box(&self.timers).next().is_some(), "nothing waits");
        }
    }

    /// Puts off the timers that were chosen to the deadlines that were planned, as whoever renews leases does, and asks after
    /// each when to look next.
    ///
    /// # Panics
    /// If one is not there.
    pub fn renew(&mut self) {
        let Load { timers, keys, deadlines, chosen, inserted, .. } = self;
        for (key, deadline) in chosen.drain(..).zip(deadlines.drain(..)) {
            assert!(timers.cancel(key), "a timer is lost");
            *inserted += 1;
            keys.push(timers.insert(deadline, *inserted));
            black_box(timers.next());
        }
    }

    /// Lets the whole hour pass, second by second, and answers how many timers fired.
    pub fn expire(&mut self) -> usize {
        self.keys.clear();
        (1..=HORIZON_MS / STEP_MS).map(|step| self.timers.expire(step * STEP_MS)).sum()
    }
}
