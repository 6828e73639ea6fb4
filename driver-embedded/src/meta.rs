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
    /// What newer scripts are needed for.
    pub(crate) gate: Option<String>,
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
    /// `sweep`: when sessions are looked through next, and from which on.
    pub(crate) sweep: Option<(UnixMs, Option<Lane>)>,
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
        self.counters.published.saturating_sub(self.ended_jobs())
    }

    pub(crate) fn ended_jobs(&self) -> u64 {
        let c = &self.counters;
        c.acked + c.cancelled + c.expired + c.purged + c.forwarded + c.lost
    }

    /// Whether there are jobs with a TTL, so far as is counted.
    pub(crate) fn has_expiries(&self) -> bool {
        self.exp.is_some_and(|count| count > 0)
    }

    /// Whether there are large records, so far as is counted.
    pub(crate) fn has_sizes(&self) -> bool {
        self.big.is_some_and(|count| count > 0)
    }

    pub(crate) fn mean(&self) -> u64 {
        self.mean.unwrap_or(0)
    }

    /// How long dead letters are kept, if not for ever.
    pub(crate) fn retention_ms(&self) -> Option<u64> {
        self.config.retention_ms.filter(|ms| *ms > 0)
    }
}

impl Meta {
    /// What is made of the other keys where `meta` was of another type.
    pub(crate) fn rebuilt(jobs: u64, exp: u64, big: u64) -> Meta {
        Meta {
            lo: Lo::At(UnixMs(0)),
            waited: true,
            exp: Some(exp),
            big: Some(big),
            counters: Counters { published: jobs, ..Counters::default() },
            ..Meta::default()
        }
    }

    /// A field becomes this text, of which scripts read what is sound; how many expiries and sizes there are they count.
    pub(crate) fn put(&mut self, field: &str, text: &[u8], exp: u64, big: u64) {
        let text = std::str::from_utf8(text).unwrap_or("\u{fffd}");
        let number = whole(text);
        match field {
            "born" => self.born = number.filter(|born| *born > 0).map(UnixMicros),
            "cfgver" => self.cfgver = number.unwrap_or(0),
            "attempts" => {
                let attempts = number.filter(|attempts| (1..=999).contains(attempts));
                self.config.attempts = attempts.and_then(|attempts| u16::try_from(attempts).ok());
            }
            "backoff" => self.config.backoff = text.parse().ok(),
            "retention" => self.config.retention_ms = number,
            "expire" => self.config.bury_expired = text == "dead",
            "max_jobs" => self.config.max_jobs = number,
            "max_bytes" => self.config.max_bytes = number,
            "forward" => self.config.forward = text.parse().ok(),
            "push" => self.config.push = Some(text.to_owned()).filter(|push| !push.is_empty()),
            "paused" => self.paused = text == "1",
            "forward_error" => self.forward_error = Some(text.to_owned()),
            "fence" => self.fence = number.map(Fence),
            "lo" if text.is_empty() => self.lo = Lo::Empty,
            "lo" => self.lo = Lo::At(UnixMs(number.filter(|at| *at < 10_000_000_000_000).unwrap_or(0))),
            "w" => self.waited = text == "1",
            "mean" => self.mean = number,
            "exp" => self.exp = Some(number.unwrap_or(exp)),
            "big" => self.big = Some(number.unwrap_or(big)),
            "sessions" => self.sessions = number,
            "sweep" => self.sweep = None,
            _ => match self.counters.named_mut(field) {
                Some(counter) => *counter = number.unwrap_or(0),
                None => self.lanes.retain(|lane, _| lane.to_string() != field),
            },
        }
    }
}

/// A number as scripts write them, of those that a double holds exactly; any other text is none.
pub(crate) fn whole(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number < 1 << 53 && number.to_string() == text).then_some(number)
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
