use core::fmt;

use serde::{Deserialize, Serialize};

/// What tells one grant of a job from every other: settling and extending name it, and Redis compares for equality.
///
/// Fences of a queue differ; that they grow is not promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
