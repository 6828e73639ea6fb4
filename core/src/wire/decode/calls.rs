use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Words, bytes, parse};
use crate::{
    CancelOutcome, Ceiling, Counters, Full, Kind, Place, PublishOutcome, QueueConfig, Reply,
    RescheduleOutcome, State, Stats, Stored, UnixMicros, UnixMs,
};

/// What a command that callers ask for answered.
pub(super) fn answer(kind: Kind, status: &str, words: &mut Words) -> Option<Reply> {
    let time = UnixMicros(words.parsed()?);
    Some(match (kind, status) {
        (_, "gate") => Reply::Gated { time: Some(time), gate: words.lossy()? },
        (Kind::Publish | Kind::Cancel | Kind::Reschedule, "superseded") => Reply::Superseded { time },
        (Kind::Destroy | Kind::Inspect, "gone") => Reply::Gone { time },
        (Kind::Configure, "conflict") => {
            Reply::ConfigConflict { time, cfgver: words.parsed()?, found: words.config()? }
        }
        (Kind::Pause, "conflict") => {
            Reply::PauseConflict { time, cfgver: words.parsed()?, paused: words.flag()? }
        }
        (_, "ok" | "again" | "full") => return done(kind, time, status, words),
        _ => return None,
    })
}

fn done(kind: Kind, time: UnixMicros, status: &str, words: &mut Words) -> Option<Reply> {
    Some(match kind {
        Kind::Publish => Reply::Published {
            time,
            since: UnixMicros(words.parsed()?),
            outcomes: words.letters(published)?,
            full: if status == "full" { Some(words.full()?) } else { None },
        },
        Kind::Cancel => Reply::Cancelled { time, outcomes: words.letters(cancelled)? },
        Kind::Reschedule => Reply::Rescheduled {
            time,
            outcomes: words.letters(rescheduled)?,
            dues: words.array()?.0.map(|value| parse(value).map(UnixMs)).collect::<Option<_>>()?,
        },
        Kind::Requeue | Kind::Purge => Reply::DeadMoved {
            time,
            until: UnixMs(words.parsed()?),
            moved: words.parsed()?,
            left: words.parsed()?,
            outcomes: words.letters(|letter| (letter == b'o' || letter == b'g').then_some(letter == b'o'))?,
        },
        Kind::Configure | Kind::Pause => Reply::Configured { time, cfgver: words.parsed()? },
        Kind::Destroy => Reply::Destroyed {
            time,
            waiting: words.parsed()?,
            leased: words.parsed()?,
            dead: words.parsed()?,
        },
        Kind::Inspect => Reply::Found { time, job: words.found(time)? },
        Kind::List(place) => words.listed(time, place)?,
        Kind::Stats => Reply::Counted { time, stats: words.stats()? },
        _ => return None,
    })
}

fn published(letter: u8) -> Option<PublishOutcome> {
    match letter {
        b'n' => Some(PublishOutcome::New),
        b'r' => Some(PublishOutcome::Replaced),
        b'd' => Some(PublishOutcome::Duplicate),
        b'f' => Some(PublishOutcome::Full),
        _ => None,
    }
}

fn cancelled(letter: u8) -> Option<CancelOutcome> {
    match letter {
        b'o' => Some(CancelOutcome::Cancelled),
        b'l' => Some(CancelOutcome::Leased),
        b'd' => Some(CancelOutcome::Dead),
        b'g' => Some(CancelOutcome::Gone),
        _ => None,
    }
}

fn rescheduled(letter: u8) -> Option<RescheduleOutcome> {
    match letter {
        b'o' => Some(RescheduleOutcome::Moved),
        b'l' => Some(RescheduleOutcome::Leased),
        b'd' => Some(RescheduleOutcome::Dead),
        b'g' => Some(RescheduleOutcome::Gone),
        b'x' => Some(RescheduleOutcome::Expires),
        _ => None,
    }
}

pub(super) fn named(words: &mut Words) -> Option<Reply> {
    let cursor = words.parsed()?;
    let names = words.array()?.0.step_by(2);
    Some(Reply::Named { cursor, queues: names.filter_map(parse).collect() })
}

pub(super) fn server(info: &[u8]) -> Reply {
    let info = String::from_utf8_lossy(info);
    let field = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|text| text.trim().to_string())
    };
    let version = field("redis_version").unwrap_or_default();
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    Reply::Server { version: (part(), part(), part()), policy: field("maxmemory_policy") }
}

impl Words {
    fn full(&mut self) -> Option<Full> {
        let (jobs, dead, max_jobs) = (self.parsed()?, self.parsed()?, self.parsed()?);
        let (bytes, max_bytes) = (self.parsed()?, self.parsed()?);
        Some(Full { jobs, dead, bytes, ceiling: Ceiling { jobs: max_jobs, bytes: max_bytes } })
    }

    fn found(&mut self, time: UnixMicros) -> Option<Stored> {
        let (id, place, at) = (self.parsed()?, self.text()?, UnixMs(self.parsed()?));
        let place = match place.as_str() {
            "leased" => Place::Leased,
            "dead" => Place::Dead,
            _ if at <= time.floor_ms() => Place::Ready,
            _ => Place::Delayed,
        };
        let state = bytes(self.0.next()?)?;
        let expires = self.maybe()?.map(UnixMs);
        Some(Stored { id, place, at, state: State::parse(&state), expires, record: bytes(self.0.next()?)? })
    }

    fn listed(&mut self, time: UnixMicros, place: Place) -> Option<Reply> {
        let (ids, scores) = (self.array()?, self.array()?);
        let (mut states, mut records) = (self.array()?, self.array()?);
        let mut jobs = Vec::with_capacity(ids.0.len());
        for (id, at) in ids.0.zip(scores.0) {
            let (state, record) = (bytes(states.0.next()?)?, bytes(records.0.next()?)?);
            if let Some(id) = parse(id) {
                jobs.push(Stored {
                    id,
                    place,
                    at: UnixMs(parse(at)?),
                    state: State::parse(&state),
                    expires: None,
                    record,
                });
            }
        }
        Some(Reply::Listed { time, jobs, more: self.flag()? })
    }

    fn config(&mut self) -> Option<QueueConfig> {
        Some(QueueConfig {
            attempts: self.maybe()?,
            backoff: self.foreign()?,
            retention_ms: self.maybe()?,
            bury_expired: self.foreign::<String>()?.as_deref() == Some("dead"),
            max_jobs: self.maybe()?,
            max_bytes: self.maybe()?,
            forward: self.foreign()?,
            push: self.foreign::<String>()?.filter(|push| !push.is_empty()),
        })
    }

    fn stats(&mut self) -> Option<Stats> {
        let mut fields = self.array()?;
        let mut stats = Stats {
            born: fields.maybe()?.map(UnixMicros),
            cfgver: fields.number()?,
            paused: fields.flag()?,
            config: fields.config()?,
            forward_error: fields.foreign::<String>()?.filter(|error| !error.is_empty()),
            mean_bytes: fields.number()?,
            counters: fields.counters()?,
            ready: self.parsed()?,
            delayed: self.parsed()?,
            leased: self.parsed()?,
            dead: self.parsed()?,
            oldest_due: self.maybe()?.map(UnixMs),
            hours: Vec::new(),
        };
        stats.hours = self.array()?.0.map(parse).collect::<Option<_>>()?;
        Some(stats)
    }

    fn counters(&mut self) -> Option<Counters> {
        Some(Counters {
            published: self.number()?,
            granted: self.number()?,
            acked: self.number()?,
            nacked: self.number()?,
            snoozed: self.number()?,
            released: self.number()?,
            ended: self.number()?,
            died: self.number()?,
            requeued: self.number()?,
            purged: self.number()?,
            cancelled: self.number()?,
            expired: self.number()?,
            forwarded: self.number()?,
            lost: self.number()?,
            unreadable: self.number()?,
            newer: self.number()?,
            broken: self.number()?,
        })
    }

    fn number(&mut self) -> Option<u64> {
        self.maybe().map(Option::unwrap_or_default)
    }
}
