use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::name::NameError;
use crate::text::ordered;

const LEN_MAX: usize = 128;
const HALF: u64 = (1 << 42) - 1;

/// The name of a job within its queue: 1 to 128 of letters, digits and `. _ - ~ : @ + = , ! * ( )`, compared as bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Arc<str>);

impl JobId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl JobId {
    /// Another id of the same millisecond, for a generated one that turned out to be in use.
    pub(crate) fn redrawn(&self, salt: u64) -> JobId {
        let mixed =
            self.0.bytes().fold(salt, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let second_half = ordered::<7>(u128::from(mixed >> 22));
        let second_half = second_half.iter().map(|&byte| char::from(byte));
        JobId(self.0.chars().take(7).chain(second_half).collect::<String>().into())
    }
}

impl FromStr for JobId {
    type Err = NameError;

    fn from_str(id: &str) -> Result<JobId, NameError> {
        let fits = (1..=LEN_MAX).contains(&id.len());
        if fits && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-~:@+=,!*()".contains(&b)) {
            Ok(JobId(Arc::from(id)))
        } else {
            Err(NameError::new("job id", id, "1 to 128 of A-Z a-z 0-9 . _ - ~ : @ + = , ! * ( )"))
        }
    }
}

impl TryFrom<&str> for JobId {
    type Error = NameError;

    fn try_from(id: &str) -> Result<JobId, NameError> {
        id.parse()
    }
}

impl TryFrom<String> for JobId {
    type Error = NameError;

    fn try_from(id: String) -> Result<JobId, NameError> {
        id.parse()
    }
}

impl TryFrom<&String> for JobId {
    type Error = NameError;

    fn try_from(id: &String) -> Result<JobId, NameError> {
        id.parse()
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JobId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl From<&JobId> for JobId {
    fn from(id: &JobId) -> JobId {
        id.clone()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Makes ids for jobs that were given none: 14 characters that sort by time of making.
///
/// 42 bits of wall-clock milliseconds, which never go back, then 42 bits that start at random in each millisecond and
/// count up within it.
#[derive(Clone, Debug, Default)]
pub struct JobIds {
    unix_ms: u64,
    count: u64,
}

impl JobIds {
    /// The next id, given the wall clock and fresh random bits.
    pub fn next(&mut self, wall_clock: crate::UnixMs, random: u64) -> JobId {
        let unix_ms = wall_clock.0 & HALF;
        if unix_ms > self.unix_ms {
            *self = JobIds { unix_ms, count: random & (HALF >> 1) };
        } else if self.count == HALF {
            *self = JobIds { unix_ms: self.unix_ms + 1, count: random & (HALF >> 1) };
        } else {
            self.count += 1;
        }
        let text = ordered::<14>(u128::from(self.unix_ms) << 42 | u128::from(self.count));
        JobId(str::from_utf8(&text).unwrap_or_default().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnixMs;
    use std::vec::Vec;

    #[test]
    fn generated_ids_sort_by_making_even_when_the_clock_goes_back() {
        let mut ids = JobIds::default();
        let made: Vec<JobId> = [(5, 9), (5, 0), (7, u64::MAX), (7, 1), (3, 1), (8, 0)]
            .map(|(ms, random)| ids.next(UnixMs(ms), random))
            .into_iter()
            .collect();
        assert!(made.is_sorted_by(|a, b| a < b), "{made:?}");
        assert!(made.iter().all(|id| id.as_str().len() == 14 && id.as_str().parse::<JobId>().is_ok()));
    }

    #[test]
    fn ids_keep_to_their_alphabet() {
        for good in ["order:17@eu", "a~b+c=d,e!f*(g)", &"x".repeat(128)] {
            assert_eq!(good.parse::<JobId>().unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a/b", "a#1", "ü", &"x".repeat(129)] {
            assert!(bad.parse::<JobId>().is_err(), "{bad}");
        }
    }
}
