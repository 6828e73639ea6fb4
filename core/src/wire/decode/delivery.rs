use alloc::format;
use alloc::vec::Vec;

use super::super::encode::read_layout;
use super::{Words, bytes, parse, text};
use crate::{
    ExtendOutcome, Fence, Grant, Kind, Reply, SettleOutcome, Shards, State, UnixMicros, UnixMs, VerdictKind,
};

/// What a command that delivering takes answered.
pub(super) fn answer(kind: Kind, status: &str, words: &mut Words) -> Option<Reply> {
    let time = words.maybe()?.map(UnixMicros);
    match (kind, status) {
        (_, "gate") => return Some(Reply::Gated { time, gate: words.lossy()? }),
        (Kind::Settle, _) => return Some(Reply::Settled { time, outcomes: words.letters(settled)? }),
        _ => {}
    }
    let time = time?;
    Some(match (kind, status) {
        (Kind::Open, _) => opened(time, status, words)?,
        (Kind::Reserve, "superseded") => Reply::Superseded { time },
        (Kind::Reserve, "closed") => words.granted(time, false)?,
        (_, "ok" | "again" | "full") => return done(kind, time, words),
        _ => return None,
    })
}

fn done(kind: Kind, time: UnixMicros, words: &mut Words) -> Option<Reply> {
    Some(match kind {
        Kind::Reserve => words.granted(time, true)?,
        Kind::Extend => {
            Reply::Extended { time, outcomes: words.letters(extended)?, lease_end: UnixMs(words.parsed()?) }
        }
        Kind::Peek => words.peeked(time)?,
        Kind::Tend => Reply::Tended {
            time,
            ended: words.parsed()?,
            expired: words.parsed()?,
            purged: words.parsed()?,
            forwarded: words.parsed()?,
            next: words.maybe()?.map(UnixMs),
            more: words.flag()?,
            forward: words.foreign()?,
        },
        _ => return None,
    })
}

fn opened(time: UnixMicros, status: &str, words: &mut Words) -> Option<Reply> {
    if status != "ok" {
        let key = words.text()?;
        return Some(Reply::Broken(format!(
            "the key {key}, which says how many shards there are, is no hash: another program wrote it; \
             `delayline doctor --repair` sets it aside, or choose another prefix"
        )));
    }
    let [layout, shards, born] = [words.lossy()?, words.lossy()?, words.lossy()?];
    let key = words.text()?;
    let read = (read_layout(&layout), shards.parse().ok().and_then(Shards::new));
    let (Some(layout), Some(shards)) = read else {
        return Some(Reply::Broken(format!(
            "the key {key} says layout {layout:?} and {shards:?} shards: another program wrote it; `delayline doctor \
             --repair` writes the numbers that the names of the keys tell"
        )));
    };
    let born = UnixMicros(born.parse().unwrap_or(0));
    Some(Reply::Opened { time, layout, shards, born })
}

fn settled(letter: u8) -> Option<SettleOutcome> {
    match letter {
        b'o' => Some(SettleOutcome::Done),
        b'd' => Some(SettleOutcome::Died),
        b'e' => Some(SettleOutcome::Expired),
        b'g' => Some(SettleOutcome::Gone),
        b's' => Some(SettleOutcome::Stale),
        b'r' => Some(SettleOutcome::Repeat),
        b'N' => Some(SettleOutcome::Conflict(VerdictKind::Nack)),
        b'S' => Some(SettleOutcome::Conflict(VerdictKind::Snooze)),
        b'R' => Some(SettleOutcome::Conflict(VerdictKind::Release)),
        b'B' => Some(SettleOutcome::Conflict(VerdictKind::Bury)),
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

impl Words {
    fn granted(&mut self, time: UnixMicros, open: bool) -> Option<Reply> {
        let (fence, lease_end) = (Fence(self.parsed()?), UnixMs(self.parsed()?));
        let backoff = self.foreign()?;
        let (ids, dues) = (self.array()?, self.array()?);
        let (mut records, mut states) = (self.array()?, self.array()?);
        let mut jobs = Vec::with_capacity(ids.0.len());
        for (id, due) in ids.0.zip(dues.0) {
            let (record, state) = (bytes(records.0.next()?), bytes(states.0.next()?)?);
            if let (Some(id), Some(record), Some(state)) = (parse(id), record, State::parse(&state)) {
                jobs.push(Grant { id, due: UnixMs(parse(due)?), record, state });
            }
        }
        let (next, more) = (self.maybe()?.map(UnixMs), self.flag()?);
        Some(Reply::Granted { time, fence, lease_end, backoff, jobs, next, more, open })
    }

    fn peeked(&mut self, time: UnixMicros) -> Option<Reply> {
        let holder = self.foreign()?;
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
}
