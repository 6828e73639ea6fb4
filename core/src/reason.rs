use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Serialize};

/// Why an attempt failed: at most 1 KiB of text, cut between characters.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct Reason(String);

impl Reason {
    /// The longest reason, in bytes.
    pub const MAX: usize = 1024;

    /// The reason, cut to [`Reason::MAX`].
    pub fn new(text: &str) -> Reason {
        let mut end = text.len().min(Reason::MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Reason(text[..end].to_string())
    }

    /// The reason as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Reason {
        Reason::new(&text)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Reason {
        Reason::new(text)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = Reason::new(&"€".repeat(500));
        assert_eq!(reason.as_str().len(), 1023);
    }
}
