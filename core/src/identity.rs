use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::{ordered, unordered};

/// Who an engine is to Redis: 64 random bits from the driver, drawn anew for every engine ever made.
///
/// Sessions rest on it: an engine that took over another's identity would have its first batches taken for repeats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

impl FromStr for Identity {
    type Err = NotAnIdentity;

    fn from_str(text: &str) -> Result<Identity, NotAnIdentity> {
        let bits = (text.len() == Identity::TEXT_LEN).then(|| unordered(text.as_bytes())).flatten();
        bits.and_then(|bits| u64::try_from(bits).ok()).map(Identity).ok_or(NotAnIdentity)
    }
}

/// A text that is no [`Identity`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no engine's identity: it has 11 characters of - 0-9 A-Z _ a-z")]
pub struct NotAnIdentity;

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_text_is_read_as_it_was_written() {
        for bits in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(Identity(bits).to_string().parse(), Ok(Identity(bits)));
        }
        assert_eq!("zzzzzzzzzzz".parse::<Identity>(), Err(NotAnIdentity));
        assert_eq!("short".parse::<Identity>(), Err(NotAnIdentity));
    }
}
