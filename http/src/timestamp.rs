use std::time::{Duration, SystemTime};

use delayline_core::{Due, UnixMs};
use serde::{Serialize, Serializer};
use thiserror::Error;
use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime, Time as TimeOfDay};

const LAST: OffsetDateTime = OffsetDateTime::new_utc(Date::MAX, TimeOfDay::MAX);

/// A point in time, written as RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(
    /// Since 1970.
    pub UnixMs,
);

/// A text that is not a time.
#[derive(Debug, Error)]
#[error(
    "{0:?} is not a time: write RFC 3339, as in 2026-11-21T10:00:05.000Z (in a query, a + must be written %2B)"
)]
pub struct TimeError(String);

impl From<Time> for Due {
    fn from(at: Time) -> Due {
        Due::At(at.0)
    }
}

impl From<Time> for SystemTime {
    fn from(at: Time) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(at.0.0)
    }
}

impl std::str::FromStr for Time {
    type Err = TimeError;

    /// Rounds up to the next millisecond, so that nothing is early.
    fn from_str(text: &str) -> Result<Time, TimeError> {
        let refused = || TimeError(text.chars().take(80).collect());
        let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| refused())?;
        let ms = at.unix_timestamp() * 1_000 + i64::from(at.nanosecond().div_ceil(1_000_000));
        u64::try_from(ms).map(|ms| Time(UnixMs(ms))).map_err(|_| refused())
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, ms) = (i64::try_from(self.0.0 / 1_000), self.0.0 % 1_000);
        let at = seconds.ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
        let at = at.unwrap_or(LAST);
        let ((year, month, day), (hour, minute, second)) = (at.to_calendar_date(), at.to_hms());
        // The machinery of formatting costs several times this, for every job that is told of.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let parts = [
            (0..4, year.unsigned_abs()),
            (5..7, u8::from(month).into()),
            (8..10, day.into()),
            (11..13, hour.into()),
            (14..16, minute.into()),
            (17..19, second.into()),
            (20..23, u32::try_from(ms).unwrap_or_default()),
        ];
        for (digits, mut value) in parts {
            for digit in text[digits].iter_mut().rev() {
                *digit += u8::try_from(value % 10).unwrap_or_default();
                value /= 10;
            }
        }
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_utc_with_milliseconds() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_795_255_205_000, "2026-11-21T10:00:05.000Z"),
            (1_795_255_205_007, "2026-11-21T10:00:05.007Z"),
        ] {
            assert_eq!(Time(UnixMs(ms)).to_string(), text);
            assert_eq!(text.parse::<Time>().unwrap().0, UnixMs(ms));
        }
        assert!(Time(UnixMs(u64::MAX)).to_string().starts_with("9999-"));
    }

    #[test]
    fn reads_offsets_and_rounds_up() {
        assert_eq!("2026-11-21T11:00:05+01:00".parse::<Time>().unwrap().0, UnixMs(1_795_255_205_000));
        assert_eq!("2026-11-21T10:00:05.0000001Z".parse::<Time>().unwrap().0, UnixMs(1_795_255_205_001));
        assert_eq!("2026-11-21 10:00:05z".parse::<Time>().unwrap().0, UnixMs(1_795_255_205_000));
        for text in [
            "",
            "tomorrow",
            "2026-11-21",
            "2026-11-21T10:00:05",
            "2026-11-21T10:00Z",
            "2026-11-21T10:00:05+01",
            "2026-02-30T10:00:05Z",
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59.001Z",
        ] {
            assert!(text.parse::<Time>().unwrap_err().to_string().contains("write RFC 3339"), "{text}");
        }
    }
}
