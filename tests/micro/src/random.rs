/// Numbers that look random and are the same in each run: SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream of its own for each seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    /// A place below `end`.
    ///
    /// # Panics
    /// On no machine that has 64 bits.
    pub fn place(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("below a place")
    }
}
