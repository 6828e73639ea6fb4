use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::{self, Vec};
use core::str::FromStr;

use bytes::Bytes;

use super::{Value, refusal};
use crate::{
    CancelOutcome, Ceiling, Counters, ExtendOutcome, Fence, Full, Grant, Kind, Place, PublishOutcome,
    QueueConfig, Reply, RescheduleOutcome, SettleOutcome, Shards, State, Stats, Stored, UnixMicros, UnixMs,
};

/// Reads the reply to a command of this kind. Total: what cannot be understood is [`Reply::Broken`].
pub fn decode(kind: Kind, value: Value) -> Reply {
    let mut words = match value {
        Value::Error(error) => {
            return refusal(&error).map_or(Reply::Broken(error), Reply::Refused);
        }
        Value::Bytes(text) if kind == Kind::Server => return server(&text),
        Value::Array(values) => Words(values.into_iter()),
        other => return Reply::Broken(format!("{kind:?} answered {}", shown(&other))),
    };
    let read = if kind == Kind::Queues {
        named(&mut words)
    } else {
        words.text().and_then(|status| answer(kind, &status, &mut words))
    };
    read.unwrap_or_else(|| Reply::Broken(format!("the answer to {kind:?} has another form than expected")))
}

fn answer(kind: Kind, status: &str, words: &mut Words) -> Option<Reply> {
    if kind == Kind::Settle {
        return Some(Reply::Settled {
            time: words.maybe()?.map(UnixMicros),
            outcomes: words.letters(settled)?,
        });
    }
    let time = UnixMicros(words.parsed()?);
    Some(match (kind, status) {
        (Kind::Publish, "moved") => Reply::Moved { time, epoch: words.parsed()? },
        (Kind::Publish | Kind::Reserve | Kind::Cancel | Kind::Reschedule, "superseded") => {
            Reply::Superseded { time }
        }
        (Kind::Destroy | Kind::Inspect, "gone") => Reply::Gone { time },
        (Kind::Configure, "conflict") => {
            Reply::ConfigConflict { time, cfgver: words.parsed()?, found: words.config()? }
        }
        (Kind::Pause, "conflict") => {
            Reply::PauseConflict { time, cfgver: words.parsed()?, paused: words.flag()? }
        }
        (Kind::Reserve, "closed") => words.granted(time, false)?,
        (_, "ok" | "again" | "full") => return done(kind, time, status, words),
        _ => return None,
    })
}

fn done(kind: Kind, time: UnixMicros, status: &str, words: &mut Words) -> Option<Reply> {
    Some(match kind {
        Kind::Open => Reply::Opened { time, layout: words.parsed()?, shards: Shards::new(words.parsed()?)? },
        Kind::Publish => Reply::Published {
            time,
            since: UnixMicros(words.parsed()?),
            outcomes: words.letters(published)?,
            full: if status == "full" { Some(words.full()?) } else { None },
        },
        Kind::Reserve => words.granted(time, true)?,
        Kind::Extend => {
            Reply::Extended { time, outcomes: words.letters(extended)?, lease_end: UnixMs(words.parsed()?) }
        }
        Kind::Cancel => Reply::Cancelled { time, outcomes: words.letters(cancelled)? },
        Kind::Reschedule => Reply::Rescheduled {
            time,
            outcomes: words.letters(rescheduled)?,
            dues: words.array()?.0.map(|value| parse(value).map(UnixMs)).collect::<Option<_>>()?,
        },
        Kind::Peek => words.peeked(time)?,
        Kind::Tend => Reply::Tended {
            time,
            ended: words.parsed()?,
            expired: words.parsed()?,
            purged: words.parsed()?,
            forwarded: words.parsed()?,
            next: words.maybe()?.map(UnixMs),
            more: words.flag()?,
            forward: words.maybe()?,
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
        Kind::Server | Kind::Settle | Kind::Queues => return None,
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

fn settled(letter: u8) -> Option<SettleOutcome> {
    match letter {
        b'o' => Some(SettleOutcome::Done),
        b'd' => Some(SettleOutcome::Died),
        b'e' => Some(SettleOutcome::Expired),
        b'g' => Some(SettleOutcome::Gone),
        b's' => Some(SettleOutcome::Stale),
        b'r' => Some(SettleOutcome::Repeat),
        _ => None,
    }
}

fn extended(letter: u8) -> Option<ExtendOutcome> {
    match letter {
        b'o' => Some(ExtendOutcome::Extended),
        b'g' => Some(ExtendOutcome::Gone),
        b's' => Some(ExtendOutcome::Stale),
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

fn named(words: &mut Words) -> Option<Reply> {
    let cursor = words.parsed()?;
    let names = words.array()?.0.step_by(2);
    Some(Reply::Named { cursor, queues: names.filter_map(parse).collect() })
}

fn server(info: &[u8]) -> Reply {
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

fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned(),
        Value::Array(values) => format!("an array of {}", values.len()),
        other => format!("{other:?}"),
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Bytes(bytes) => String::from_utf8(bytes.into()).ok(),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

fn bytes(value: Value) -> Option<Bytes> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn parse<T: FromStr>(value: Value) -> Option<T> {
    text(value)?.parse().ok()
}

struct Words(vec::IntoIter<Value>);

impl Words {
    fn text(&mut self) -> Option<String> {
        text(self.0.next()?)
    }

    fn parsed<T: FromStr>(&mut self) -> Option<T> {
        parse(self.0.next()?)
    }

    /// An empty text is none; any other must parse.
    #[allow(clippy::option_option)]
    fn maybe<T: FromStr>(&mut self) -> Option<Option<T>> {
        let text = self.text()?;
        if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
    }

    fn number(&mut self) -> Option<u64> {
        self.maybe().map(Option::unwrap_or_default)
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.text()? == "1")
    }

    fn array(&mut self) -> Option<Words> {
        match self.0.next()? {
            Value::Array(values) => Some(Words(values.into_iter())),
            _ => None,
        }
    }

    fn letters<T>(&mut self, meaning: impl Fn(u8) -> Option<T>) -> Option<Vec<T>> {
        self.text()?.bytes().map(meaning).collect()
    }

    fn full(&mut self) -> Option<Full> {
        let (jobs, dead, max_jobs) = (self.parsed()?, self.parsed()?, self.parsed()?);
        let (bytes, max_bytes) = (self.parsed()?, self.parsed()?);
        Some(Full { jobs, dead, bytes, ceiling: Ceiling { jobs: max_jobs, bytes: max_bytes } })
    }

    fn granted(&mut self, time: UnixMicros, open: bool) -> Option<Reply> {
        let (fence, lease_end) = (Fence(self.parsed()?), UnixMs(self.parsed()?));
        let backoff = self.text()?.parse().ok();
        let (ids, dues) = (self.array()?, self.array()?);
        let (mut records, mut states) = (self.array()?, self.array()?);
        let mut jobs = Vec::with_capacity(ids.0.len());
        for (id, due) in ids.0.zip(dues.0) {
            let (record, state) = (bytes(records.0.next()?), bytes(states.0.next()?)?);
            if let (Some(id), Some(record)) = (parse(id), record) {
                jobs.push(Grant { id, due: UnixMs(parse(due)?), record, state: State::parse(&state)? });
            }
        }
        let (next, more) = (self.maybe()?.map(UnixMs), self.flag()?);
        Some(Reply::Granted { time, fence, lease_end, backoff, jobs, next, more, open })
    }

    fn peeked(&mut self, time: UnixMicros) -> Option<Reply> {
        let holder = self.maybe()?;
        let until = UnixMs(self.parsed()?);
        let (members, times) = (self.array()?, self.array()?);
        let agenda = members.0.zip(times.0).filter_map(|(member, at)| {
            Some((text(member)?.strip_prefix('q')?.parse().ok()?, UnixMs(parse(at)?)))
        });
        let (holder, agenda) = (holder.map(|engine| (engine, until)), agenda.collect());
        let mut dues = self.array()?;
        let firsts = (0..dues.0.len()).map(|_| Some(dues.maybe()?.map(UnixMs))).collect::<Option<_>>()?;
        Some(Reply::Peeked { time, holder, agenda, firsts })
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
        let state = if state.is_empty() { None } else { Some(State::parse(&state)?) };
        let expires = self.maybe()?.map(UnixMs);
        Some(Stored { id, place, at, state, expires, record: bytes(self.0.next()?)? })
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
            backoff: self.maybe()?,
            retention_ms: self.maybe()?,
            bury_expired: self.text()? == "dead",
            max_jobs: self.maybe()?,
            max_bytes: self.maybe()?,
            forward: self.maybe()?,
        })
    }

    fn stats(&mut self) -> Option<Stats> {
        let mut fields = self.array()?;
        let mut stats = Stats {
            born: fields.maybe()?.map(UnixMicros),
            epoch: fields.number()?,
            cfgver: fields.number()?,
            paused: fields.flag()?,
            config: fields.config()?,
            forward_error: fields.maybe()?,
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
        })
    }
}
