use bytes::Bytes;
use delayline_core::{JobId, Reason, State, UnixMs};

use crate::bug::Bug;
use crate::changes::set_flag;
use crate::script::Script;

const NEWER_MS: u64 = 60_000;
const SMALL_BYTES: u64 = 4_096;
const ARMOURED: u8 = 8;
const COMPRESSED: u8 = 16;
const RESERVED: u8 = 0xe0;
const LOST_DELAY: u8 = 2;

/// What scripts read of a record's head: less than [`delayline_core::Head`] reads, and they are as strict about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub(crate) head_len: usize,
    pub(crate) metadata_len: usize,
    pub(crate) flags: u8,
    /// Eight digits of milliseconds, or empty.
    pub(crate) lost_delay: String,
    /// 0 leaves it to the queue.
    pub(crate) attempts: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    Newer,
    Unreadable,
}

/// A due job that can be read.
pub(crate) struct DueJob {
    pub(crate) id: JobId,
    pub(crate) due: UnixMs,
    pub(crate) record: Bytes,
    pub(crate) head: RecordHead,
    pub(crate) state: Option<State>,
    pub(crate) big: bool,
    pub(crate) ttl: bool,
}

impl RecordHead {
    pub(crate) fn read(record: &[u8]) -> Result<RecordHead, Misfit> {
        if matches!(record.first(), Some(b'2'..=b'9')) {
            return Err(Misfit::Newer);
        }
        let fixed = record.get(..12).ok_or(Misfit::Unreadable)?;
        let [head_len, metadata_len, flags, priority, attempts] =
            [(1..3, 10), (3..6, 16), (6..8, 16), (8..9, 10), (9..12, 10)]
                .map(|(at, radix)| fixed.get(at).and_then(|digits| number(digits, radix)));
        let (Some(head_len), Some(metadata_len), Some(flags), Some(_), Some(attempts), b'1') =
            (head_len, metadata_len, flags, priority, attempts, fixed[0])
        else {
            return Err(Misfit::Unreadable);
        };
        let flags = u8::try_from(flags).unwrap_or(RESERVED);
        if flags & RESERVED != 0 {
            return Err(Misfit::Newer);
        }
        let (head_len, metadata_len) = (usize::from(head_len), usize::from(metadata_len));
        if head_len < 12 || head_len + metadata_len > record.len() {
            return Err(Misfit::Unreadable);
        }
        let lost_delay = if flags & LOST_DELAY == 0 { String::new() } else { lost_delay(record, head_len)? };
        Ok(RecordHead { head_len, metadata_len, flags, lost_delay, attempts })
    }

    pub(crate) fn encoding(&self) -> &'static str {
        match (self.flags & ARMOURED != 0, self.flags & COMPRESSED != 0) {
            (true, true) => "base64+lz4",
            (true, false) => "base64",
            (false, true) => "lz4",
            (false, false) => "identity",
        }
    }
}

fn lost_delay(record: &[u8], head_len: usize) -> Result<String, Misfit> {
    let digits = record.get(12..20).filter(|digits| head_len >= 20 && digits.iter().all(u8::is_ascii_digit));
    digits.map(|digits| String::from_utf8_lossy(digits).into_owned()).ok_or(Misfit::Unreadable)
}

fn number(digits: &[u8], radix: u32) -> Option<u16> {
    digits.iter().try_fold(0_u16, |number, digit| {
        let digit = char::from(*digit).to_digit(radix)?;
        Some(number * u16::try_from(radix).ok()? + u16::try_from(digit).ok()?)
    })
}

impl Script<'_> {
    /// How many of the ids fit into `max_bytes`: at least one, whatever its size. Small records count 4 KiB.
    pub(crate) fn how_many_fit<'j>(&self, ids: impl Iterator<Item = &'j JobId>, max_bytes: u64) -> usize {
        let mut bytes = 0_u64;
        let mut fit = 0;
        for id in ids {
            let size = self.queue.size(id).unwrap_or(0) as u64;
            bytes += size.max(SMALL_BYTES);
            if bytes > max_bytes && !self.planted(Bug::MaxBytesIgnored) {
                return fit.max(1);
            }
            fit += 1;
        }
        fit
    }

    /// Sorts out what is due: answers each readable job; all others are dealt with.
    pub(crate) fn sift(&mut self, due: Vec<(JobId, UnixMs)>) -> Vec<DueJob> {
        due.into_iter().filter_map(|(id, due)| self.sift_one(id, due)).collect()
    }

    fn sift_one(&mut self, id: JobId, due: UnixMs) -> Option<DueJob> {
        let record = self.queue.pool.get(&id).cloned();
        let expiry = self.queue.expiry(&id);
        let (big, ttl) = (self.queue.size(&id).is_some(), expiry.is_some());
        let broken = self.queue.is_broken(&id);
        let state = self.queue.state_of(&id);
        self.changes.out.due.push(id.clone());
        if expiry.is_some_and(|expiry| expiry <= self.now) && !self.planted(Bug::ExpiredGranted) {
            self.expires(&id, state, due);
            return None;
        }
        let Some(record) = record else {
            self.vanishes(&id, state.as_ref());
            self.queue.meta.counters.lost += 1;
            return None;
        };
        match RecordHead::read(&record) {
            Ok(_) if broken && self.planted(Bug::BrokenStateWaits) => self.changes.into.due.push((id, due)),
            Ok(_) if broken => {
                let state = self.first_state(&id, due);
                self.quarantine(&id, Some(state), due, "broken state");
                self.queue.meta.counters.unreadable += 1;
            }
            Ok(head) => return Some(DueJob { id, due, record, head, state, big, ttl }),
            Err(Misfit::Newer) => {
                let at = self.now + NEWER_MS;
                self.changes.into.due.push((id, at));
                self.note(at);
                self.queue.meta.counters.newer += 1;
            }
            Err(Misfit::Unreadable) => {
                let state = state.filter(|_| !broken);
                self.quarantine(&id, state, due, "unreadable");
                self.queue.meta.counters.unreadable += 1;
            }
        }
        None
    }

    /// A due job that nobody can be given becomes a dead letter.
    pub(crate) fn quarantine(&mut self, id: &JobId, state: Option<State>, due: UnixMs, reason: &str) {
        let mut state = state.unwrap_or_else(|| self.first_state(id, due));
        set_flag(&mut state, State::BIG, self.queue.size(id).is_some());
        set_flag(&mut state, State::TTL, self.queue.expiry(id).is_some());
        state.verdict = None;
        self.dies(id, state, Reason::new(reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_told_apart() {
        for (record, want) in [
            ("", Err(Misfit::Unreadable)),
            ("11200000000", Err(Misfit::Unreadable)),
            ("012000000000", Err(Misfit::Unreadable)),
            ("x12000000000", Err(Misfit::Unreadable)),
            ("111000000000", Err(Misfit::Unreadable)),
            ("112001000000", Err(Misfit::Unreadable)),
            ("1120000000x0", Err(Misfit::Unreadable)),
            ("112000020000", Err(Misfit::Unreadable)),
            ("1200000200000001500x", Err(Misfit::Unreadable)),
            ("112000200000", Err(Misfit::Newer)),
            ("2", Err(Misfit::Newer)),
            ("9 whatever it is", Err(Misfit::Newer)),
            ("11200018000712", Ok((12, 0, 0x18, "", 7))),
            ("12000F0200120001500015 letters long", Ok((20, 15, 2, "00015000", 12))),
        ] {
            let head = RecordHead::read(record.as_bytes());
            let got = head.as_ref().map(|head| {
                (head.head_len, head.metadata_len, head.flags, head.lost_delay.as_str(), head.attempts)
            });
            assert_eq!(got, want.as_ref().map(|want| *want), "{record}");
        }
    }
}
