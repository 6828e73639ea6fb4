use std::collections::BTreeMap;

use delayline_core::{Counters, Fence, QueueConfig, UnixMicros, UnixMs};

use crate::session::{Lane, Past};

/// The `meta` of a queue. What is `None`, false or a counter of 0 is a field that is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Meta {
    pub(crate) born: Option<UnixMicros>,
    pub(crate) cfgver: u64,
    pub(crate) config: QueueConfig,
    pub(crate) paused: bool,
    pub(crate) forward_error: Option<String>,
    pub(crate) fence: Option<Fence>,
    pub(crate) lo: Lo,
    /// `w`: someone waits to be woken.
    pub(crate) waited: bool,
    pub(crate) mean: Option<u64>,
    pub(crate) exp: Option<u64>,
    pub(crate) big: Option<u64>,
    pub(crate) counters: Counters,
    pub(crate) lanes: BTreeMap<Lane, Past>,
    /// `sessions`: how many lanes there are.
    pub(crate) sessions: Option<u64>,
    pub(crate) swept: Option<UnixMs>,
}

/// The lower bound of the earliest lease end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Lo {
    /// The field is not there: no lease was ever granted.
    #[default]
    Unset,
    /// The field is empty: no lease is held.
    Empty,
    At(UnixMs),
}

impl Lo {
    pub(crate) fn of(first: Option<UnixMs>) -> Lo {
        first.map_or(Lo::Empty, Lo::At)
    }

    pub(crate) fn at(self) -> Option<UnixMs> {
        match self {
            Lo::At(at) => Some(at),
            Lo::Unset | Lo::Empty => None,
        }
    }
}

impl Meta {
    /// The jobs that the queue holds, wherever they are.
    pub(crate) fn live_jobs(&self) -> u64 {
        let c = &self.counters;
        let ended = c.acked + c.cancelled + c.expired + c.purged + c.forwarded + c.lost;
        c.published.saturating_sub(ended)
    }

    pub(crate) fn mean(&self) -> u64 {
        self.mean.unwrap_or(0)
    }

    /// How long dead letters are kept, if not for ever.
    pub(crate) fn retention_ms(&self) -> Option<u64> {
        self.config.retention_ms.filter(|ms| *ms > 0)
    }
}

/// Raises a field that is not there until it is first raised.
pub(crate) fn raise(field: &mut Option<u64>, by: usize) {
    if by > 0 {
        *field = Some(field.unwrap_or(0) + by as u64);
    }
}

/// Lowers a field, which stays when it reaches 0.
pub(crate) fn lower(field: &mut Option<u64>, by: usize) {
    if by > 0 {
        *field = Some(field.unwrap_or(0).saturating_sub(by as u64));
    }
}
