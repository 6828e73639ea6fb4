use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_core::{Due, UnixMs};

use crate::invalid::millis;

/// When a job is to be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So long after the call, by Redis's clock.
    In(Duration),
    /// At this time, by Redis's clock; at once if it is past.
    At(SystemTime),
}

impl When {
    pub(crate) fn due(self) -> Due {
        match self {
            When::In(delay) => Due::After { ms: millis(delay) },
            When::At(at) => Due::At(unix_ms(at)),
        }
    }
}

impl Default for When {
    fn default() -> When {
        When::In(Duration::ZERO)
    }
}

impl From<Due> for When {
    fn from(due: Due) -> When {
        match due {
            Due::After { ms } => When::In(Duration::from_millis(ms)),
            Due::At(at) => When::At(UNIX_EPOCH + Duration::from_millis(at.0)),
        }
    }
}

impl From<Duration> for When {
    fn from(delay: Duration) -> When {
        When::In(delay)
    }
}

impl From<SystemTime> for When {
    fn from(at: SystemTime) -> When {
        When::At(at)
    }
}

/// Rounded up; what is before 1970 is 1970.
pub(crate) fn unix_ms(at: SystemTime) -> UnixMs {
    UnixMs(millis(at.duration_since(UNIX_EPOCH).unwrap_or_default()))
}
