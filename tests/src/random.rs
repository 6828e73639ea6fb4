use std::ops::RangeInclusive;

/// Splitmix64: one seed, one sequence.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of the range.
    pub fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        let span = range.end() - range.start();
        range.start() + if span == u64::MAX { self.any() } else { self.any() % (span + 1) }
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.number(0..=99) < percent
    }

    /// One of the choices.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let last = choices.len().checked_sub(1).expect("something to choose from");
        let at = self.number(0..=last as u64);
        &choices[usize::try_from(at).unwrap_or(last)]
    }
}
