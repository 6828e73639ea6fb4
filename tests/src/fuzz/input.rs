/// Bytes as a sequence of choices. Once they have ended every choice is the first.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number less than `end`.
    pub(super) fn below(&mut self, end: u8) -> u8 {
        self.byte() % end.max(1)
    }

    pub(super) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// True once in so many times.
    pub(super) fn once_in(&mut self, times: u8) -> bool {
        self.below(times) == times - 1
    }

    /// Any number, those at which something changes more often.
    pub(super) fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => self.byte().into(),
            2 => self.integer(2),
            3 => self.integer(4),
            4 => self.integer(8),
            5 => u64::MAX - u64::from(self.byte()),
            6 => 1_763_700_000_000 + self.integer(2),
            _ => 1 << (self.byte() % 64),
        }
    }

    pub(super) fn some_number(&mut self) -> Option<u64> {
        self.flag().then(|| self.number())
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// At most so many of the next bytes, as many as the first of them says.
    pub(super) fn bytes(&mut self, most: u8) -> &'a [u8] {
        let len = usize::from(self.byte()) % (usize::from(most) + 1);
        self.take(len)
    }

    pub(super) fn text(&mut self, most: u8) -> String {
        String::from_utf8_lossy(self.bytes(most)).into_owned()
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        self.take(self.0.len())
    }

    fn integer(&mut self, len: usize) -> u64 {
        self.take(len).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
