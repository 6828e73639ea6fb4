use std::fmt;
use std::str::FromStr;

use base64ct::{Base64UrlUnpadded, Encoding};
use delayline_core::{JobId, Shard, UnixMs};

use crate::Invalid;

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// What is on it; possibly nothing, even on a page that is not the last.
    pub items: Vec<T>,
    /// What to pass for the next page; `None` on the last.
    pub next: Option<Cursor>,
}

/// Where a page of a list ends: an opaque text that fits into a URL. It stays good while the list changes. Of two cursors
/// of one list, the one further on is the greater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(At);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Job(UnixMs, JobId),
    Queue(Shard, u64),
}

/// The longest id, and the last in order.
const LAST_ID: &str = match str::from_utf8(&[b'~'; 128]) {
    Ok(id) => id,
    Err(_) => unreachable!(),
};

impl Cursor {
    /// Where a list of jobs begins that leaves out all before this time: due times, ends of leases or times of death, by
    /// what is listed. `None` is the beginning.
    pub fn since(at: UnixMs) -> Option<Cursor> {
        let before = at.0.checked_sub(1)?;
        Some(Cursor::of_job(UnixMs(before), LAST_ID.parse().ok()?))
    }

    /// The page after this job: by due time, end of lease or time of death, as its list has it.
    pub fn after_job(at: UnixMs, id: JobId) -> Cursor {
        Cursor::of_job(at, id)
    }

    pub(crate) fn of_job(at: UnixMs, id: JobId) -> Cursor {
        Cursor(At::Job(at, id))
    }

    pub(crate) fn of_queues(shard: Shard, cursor: u64) -> Cursor {
        Cursor(At::Queue(shard, cursor))
    }

    pub(crate) fn job(&self) -> Result<(UnixMs, JobId), Invalid> {
        match &self.0 {
            At::Job(at, id) => Ok((*at, id.clone())),
            At::Queue(..) => Err(Invalid::Cursor),
        }
    }

    pub(crate) fn queues(&self) -> Result<(Shard, u64), Invalid> {
        match &self.0 {
            At::Queue(shard, cursor) => Ok((*shard, *cursor)),
            At::Job(..) => Err(Invalid::Cursor),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match &self.0 {
            At::Job(at, id) => format!("j {at} {id}"),
            At::Queue(shard, cursor) => format!("q {shard} {cursor}"),
        };
        f.write_str(&Base64UrlUnpadded::encode_string(plain.as_bytes()))
    }
}

impl FromStr for Cursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Cursor, Invalid> {
        read(text).ok_or(Invalid::Cursor)
    }
}

fn read(text: &str) -> Option<Cursor> {
    let plain = String::from_utf8(Base64UrlUnpadded::decode_vec(text).ok()?).ok()?;
    let mut words = plain.split(' ');
    let cursor = match words.next()? {
        "j" => Cursor::of_job(UnixMs(words.next()?.parse().ok()?), words.next()?.parse().ok()?),
        "q" => Cursor::of_queues(Shard(words.next()?.parse().ok()?), words.next()?.parse().ok()?),
        _ => return None,
    };
    words.next().is_none().then_some(cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_since_a_time_begins_between_two_milliseconds() {
        let (at, first, last) = (UnixMs(5), "!".parse().unwrap(), LAST_ID.parse().unwrap());
        let since = Cursor::since(at).unwrap();
        assert!(Cursor::of_job(UnixMs(4), last) <= since && since < Cursor::of_job(at, first));
        assert_eq!(Cursor::since(UnixMs(0)), None);
    }

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let id = "order:17@eu".parse().unwrap();
        for cursor in [Cursor::of_job(UnixMs(1_763_700_000_500), id), Cursor::of_queues(Shard(3), 1 << 40)] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for bad in ["", "x", "!!", "cSAx", "eCAxIDI"] {
            assert_eq!(bad.parse::<Cursor>(), Err(Invalid::Cursor), "{bad}");
        }
    }
}
