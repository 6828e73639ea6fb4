use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

use super::{RecordError, failure, unreadable};

const FIXED_LEN: usize = 12;
const METADATA_MAX: usize = 0xfff;
const DEDUP_MAX: usize = 64;
pub(crate) const LOST_DELAY_MAX: u64 = 99_999_999;

const TTL: u8 = 0x01;
const LOST_DELAY: u8 = 0x02;
const DEDUP: u8 = 0x04;
const ARMOURED: u8 = 0x08;
const COMPRESSED: u8 = 0x10;
const NEWER: u8 = 0xe0;

/// The head of a record: all that scripts and the embedded store read of it.
///
/// 12 ASCII characters at fixed places — format `1`, length of the head (2, decimal), stored length of the metadata
/// (3, hexadecimal), flags (2, hexadecimal), priority (1), attempts (3, decimal, 000 for the queue's default) — then a
/// part for each flag that has one: 02 the delay after a lost lease (8, decimal ms), 04 the deduplication key's length
/// (2, decimal) and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whether the job expires.
    pub has_ttl: bool,
    /// Milliseconds to wait after a lease that ended unsettled.
    pub lost_delay_ms: Option<u64>,
    /// The deduplication key, 1 to 64 bytes.
    pub dedup: Option<String>,
    /// 0 to 9.
    pub priority: u8,
    /// How often the job may be delivered, 1 to 999; `None` leaves it to the queue.
    pub attempts: Option<u16>,
    /// Whether metadata and body are base64url without padding.
    pub armoured: bool,
    /// Whether the body is compressed.
    pub compressed: bool,
    /// The stored length of the metadata, in bytes.
    pub metadata_len: usize,
}

impl Head {
    /// Reads the head from the beginning of a stored record; what follows it is not looked at.
    pub fn decode(stored: &[u8]) -> Result<Head, RecordError> {
        if matches!(stored.first(), Some(b'2'..=b'9')) {
            return Err(RecordError::Newer { what: "its format" });
        }
        let fixed = stored.get(..FIXED_LEN).ok_or(unreadable("shorter than a head"))?;
        if fixed.first() != Some(&b'1') {
            return Err(failure::stood_for(stored).unwrap_or(unreadable("no format")));
        }
        let head_len = size(number(fixed, 1..3, 10, "length of head")?);
        let metadata_len = size(number(fixed, 3..6, 16, "length of metadata")?);
        let flags = u8::try_from(number(fixed, 6..8, 16, "flags")?).unwrap_or(NEWER);
        let priority = u8::try_from(number(fixed, 8..9, 10, "priority")?).unwrap_or(0);
        let attempts = u16::try_from(number(fixed, 9..12, 10, "attempts")?).unwrap_or(0);
        if flags & NEWER != 0 {
            return Err(RecordError::Newer { what: "its flags" });
        }
        let mut end = FIXED_LEN;
        let lost_delay_ms = match flags & LOST_DELAY {
            0 => None,
            _ => Some(number(stored, advance(&mut end, 8), 10, "delay after a lost lease")?),
        };
        let dedup = match flags & DEDUP {
            0 => None,
            _ => Some(dedup(stored, &mut end)?),
        };
        if head_len != end {
            return Err(unreadable("length of head"));
        }
        Ok(Head {
            has_ttl: flags & TTL != 0,
            lost_delay_ms,
            dedup,
            priority,
            attempts: (attempts > 0).then_some(attempts),
            armoured: flags & ARMOURED != 0,
            compressed: flags & COMPRESSED != 0,
            metadata_len,
        })
    }

    /// Writes the head: ASCII but for the deduplication key. Fails if a field is out of range.
    pub fn encode(&self) -> Result<Vec<u8>, RecordError> {
        self.check()?;
        let flags = flag(self.has_ttl, TTL)
            | flag(self.lost_delay_ms.is_some(), LOST_DELAY)
            | flag(self.dedup.is_some(), DEDUP)
            | flag(self.armoured, ARMOURED)
            | flag(self.compressed, COMPRESSED);
        let mut head = Vec::with_capacity(self.len());
        head.push(b'1');
        head.extend(digits::<2>(self.len() as u64, 10));
        head.extend(digits::<3>(self.metadata_len as u64, 16));
        head.extend(digits::<2>(flags.into(), 16));
        head.extend(digits::<1>(self.priority.into(), 10));
        head.extend(digits::<3>(self.attempts.unwrap_or(0).into(), 10));
        if let Some(ms) = self.lost_delay_ms {
            head.extend(digits::<8>(ms, 10));
        }
        if let Some(key) = &self.dedup {
            head.extend(digits::<2>(key.len() as u64, 10));
            head.extend_from_slice(key.as_bytes());
        }
        Ok(head)
    }

    /// The length of the head in bytes: where the metadata begins.
    #[expect(clippy::len_without_is_empty, reason = "no head is empty")]
    pub fn len(&self) -> usize {
        let lost_delay = if self.lost_delay_ms.is_some() { 8 } else { 0 };
        FIXED_LEN + lost_delay + self.dedup.as_ref().map_or(0, |key| 2 + key.len())
    }

    /// Cuts metadata and body, as stored, out of a whole record.
    pub(super) fn parts(&self, stored: &Bytes) -> Result<(Bytes, Bytes), RecordError> {
        let metadata = self.len();
        let body = metadata + self.metadata_len;
        if body > stored.len() {
            return Err(unreadable("shorter than its metadata"));
        }
        Ok((stored.slice(metadata..body), stored.slice(body..)))
    }

    fn check(&self) -> Result<(), RecordError> {
        let key = self.dedup.as_ref().map_or(1, String::len);
        let checks = [
            ("priority", self.priority.into(), 0..=9, "0 to 9"),
            ("attempts", self.attempts.unwrap_or(1).into(), 1..=999, "1 to 999"),
            (
                "delay after a lost lease",
                self.lost_delay_ms.unwrap_or(0),
                0..=LOST_DELAY_MAX,
                "at most 99,999,999 ms, about 27 hours",
            ),
            ("length of the deduplication key", key as u64, 1..=DEDUP_MAX as u64, "1 to 64 bytes"),
            (
                "length of the metadata",
                self.metadata_len as u64,
                0..=METADATA_MAX as u64,
                "at most 4,095 bytes",
            ),
        ];
        checks.into_iter().try_for_each(|(field, value, range, allowed)| {
            if range.contains(&value) {
                Ok(())
            } else {
                Err(RecordError::OutOfRange { field, value, allowed })
            }
        })
    }
}

fn dedup(stored: &[u8], end: &mut usize) -> Result<String, RecordError> {
    let len = size(number(stored, advance(end, 2), 10, "length of deduplication key")?);
    let key = stored.get(advance(end, len)).and_then(|key| core::str::from_utf8(key).ok());
    key.filter(|_| (1..=DEDUP_MAX).contains(&len))
        .map(ToString::to_string)
        .ok_or(unreadable("deduplication key"))
}

fn advance(end: &mut usize, by: usize) -> Range<usize> {
    let start = *end;
    *end += by;
    start..*end
}

fn number(text: &[u8], at: Range<usize>, radix: u32, what: &'static str) -> Result<u64, RecordError> {
    let digits = text.get(at).ok_or(unreadable(what))?;
    digits.iter().try_fold(0, |number, digit| {
        let digit = char::from(*digit).to_digit(radix).ok_or(unreadable(what))?;
        Ok(number * u64::from(radix) + u64::from(digit))
    })
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// The last `N` digits of a number.
fn digits<const N: usize>(mut value: u64, radix: u8) -> [u8; N] {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        let next = u8::try_from(value % u64::from(radix)).unwrap_or_default();
        *digit = if next < 10 { b'0' + next } else { b'a' + (next - 10) };
        value /= u64::from(radix);
    }
    digits
}
