use core::fmt;

use crate::text::ordered;

/// Who an engine is to Redis: 64 random bits from the driver, drawn anew for every engine ever made.
///
/// Sessions rest on it: an engine that took over another's identity would have its first batches taken for repeats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(pub u64);

impl Identity {
    /// The length of an identity's text, in bytes.
    pub const TEXT_LEN: usize = 11;

    /// The identity as Redis holds it: [`Identity::TEXT_LEN`] characters.
    pub fn text(self) -> [u8; Identity::TEXT_LEN] {
        ordered(u128::from(self.0))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().iter().try_for_each(|&byte| fmt::Write::write_char(f, char::from(byte)))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}
