use core::fmt;
use core::ops::Add;

use serde::{Deserialize, Serialize};

/// A reading of the engine's own monotone clock, in milliseconds since an origin the driver chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Millis(pub u64);

/// A point in time by Redis's clock, in milliseconds since 1970: due times, lease ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnixMs(pub u64);

/// What Redis answers to `TIME`, in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnixMicros(pub u64);

impl Millis {
    /// The milliseconds from `earlier` to `self`, zero if `earlier` is later.
    pub fn since(self, earlier: Millis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Millis {
    type Output = Millis;

    fn add(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add(ms))
    }
}

impl UnixMs {
    /// The milliseconds from `earlier` to `self`, zero if `earlier` is later.
    pub fn since(self, earlier: UnixMs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for UnixMs {
    type Output = UnixMs;

    fn add(self, ms: u64) -> UnixMs {
        UnixMs(self.0.saturating_add(ms))
    }
}

impl UnixMicros {
    /// The millisecond that has begun: what scripts call `now`.
    pub fn floor_ms(self) -> UnixMs {
        UnixMs(self.0 / 1000)
    }

    /// The first millisecond not before this instant: what delays are added to, so that they round up.
    pub fn ceil_ms(self) -> UnixMs {
        UnixMs(self.0.div_ceil(1000))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1000, self.0 % 1000)
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for UnixMicros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
