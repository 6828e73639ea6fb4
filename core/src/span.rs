use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use thiserror::Error;

const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A length of time in milliseconds, written as people write it: `250ms`, `5s`, `1h30m`, `2d`.
///
/// Reads whole numbers, each with one of the units `w d h m s ms`, the larger unit first, without spaces. Prints the
/// shortest such text without weeks, and `0s` for none, so that what it prints reads back as the same span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// A text that is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpanError {
    /// There is a number without a unit.
    #[error("{number} in {text:?} has no unit: write {number}s for seconds, or use ms, m, h, d or w")]
    NoUnit {
        /// The rejected text, cut to 80 characters.
        text: String,
        /// The number that lacks its unit, cut to 20 digits.
        number: String,
    },
    /// There is a unit that does not exist.
    #[error("{unit:?} in {text:?} is not a unit: use ms, s, m, h, d or w, as in 1h30m")]
    UnknownUnit {
        /// The rejected text, cut to 80 characters.
        text: String,
        /// The letters found where a unit was expected, cut to 20.
        unit: String,
    },
    /// The units are repeated, or a smaller one comes first.
    #[error("the units in {text:?} are out of order: write each once and the larger first, as in 1h30m")]
    Order {
        /// The rejected text, cut to 80 characters.
        text: String,
    },
    /// There is no number where one is needed.
    #[error("{text:?} is not a length of time: write numbers with units, as in 250ms, 5s or 1h30m")]
    NotASpan {
        /// The rejected text, cut to 80 characters.
        text: String,
    },
    /// The length does not fit.
    #[error("{text:?} is longer than can be counted in milliseconds: write a shorter time")]
    TooLong {
        /// The rejected text, cut to 80 characters.
        text: String,
    },
}

impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        Duration::from_millis(span.0)
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Span, SpanError> {
        let shown = || cut(text, 80);
        let mut units = UNITS.iter();
        let mut total: u64 = 0;
        let mut rest = text;
        loop {
            let (number, after) = split_where(rest, |c| !c.is_ascii_digit());
            if number.is_empty() {
                return Err(SpanError::NotASpan { text: shown() });
            }
            let (name, after) = split_where(after, |c| c.is_ascii_digit());
            if name.is_empty() {
                return Err(SpanError::NoUnit { text: shown(), number: cut(number, 20) });
            }
            if !UNITS.iter().any(|unit| unit.0 == name) {
                return Err(SpanError::UnknownUnit { text: shown(), unit: cut(name, 20) });
            }
            let Some(&(_, ms)) = units.find(|unit| unit.0 == name) else {
                return Err(SpanError::Order { text: shown() });
            };
            total = number
                .parse::<u64>()
                .ok()
                .and_then(|count| count.checked_mul(ms))
                .and_then(|part| part.checked_add(total))
                .ok_or_else(|| SpanError::TooLong { text: shown() })?;
            if after.is_empty() {
                return Ok(Span(total));
            }
            rest = after;
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (name, ms) in &UNITS[1..] {
            if rest >= *ms {
                write!(f, "{}{name}", rest / ms)?;
                rest %= ms;
            }
        }
        Ok(())
    }
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn reads_what_people_write() {
        for (text, ms) in [
            ("5s", 5_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("2d", 172_800_000),
            ("0s", 0),
            ("007s", 7_000),
            ("1w2d3h4m5s6ms", 788_645_006),
            ("90m", 5_400_000),
            ("18446744073709551615ms", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Span(ms)), "{text}");
        }
    }

    #[test]
    fn says_what_to_write_instead() {
        for (text, message) in [
            ("90", "90 in \"90\" has no unit: write 90s for seconds, or use ms, m, h, d or w"),
            ("1h30", "30 in \"1h30\" has no unit: write 30s for seconds, or use ms, m, h, d or w"),
            ("5 s", "\" s\" in \"5 s\" is not a unit: use ms, s, m, h, d or w, as in 1h30m"),
            ("5S", "\"S\" in \"5S\" is not a unit: use ms, s, m, h, d or w, as in 1h30m"),
            ("1.5h", "\".\" in \"1.5h\" is not a unit: use ms, s, m, h, d or w, as in 1h30m"),
            (
                "30m1h",
                "the units in \"30m1h\" are out of order: write each once and the larger first, as in 1h30m",
            ),
            (
                "1s1s",
                "the units in \"1s1s\" are out of order: write each once and the larger first, as in 1h30m",
            ),
            ("", "\"\" is not a length of time: write numbers with units, as in 250ms, 5s or 1h30m"),
            ("-5s", "\"-5s\" is not a length of time: write numbers with units, as in 250ms, 5s or 1h30m"),
            (
                "18446744073709551616ms",
                "\"18446744073709551616ms\" is longer than can be counted in milliseconds: write a shorter time",
            ),
            (
                "18446744073709551615s",
                "\"18446744073709551615s\" is longer than can be counted in milliseconds: write a shorter time",
            ),
        ] {
            assert_eq!(text.parse::<Span>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn prints_the_larger_units_first() {
        for (ms, text) in
            [(0, "0s"), (5_400_000, "1h30m"), (1, "1ms"), (61_001, "1m1s1ms"), (1_209_600_000, "14d")]
        {
            assert_eq!(Span(ms).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(ms: u64) {
            prop_assert_eq!(Span(ms).to_string().parse(), Ok(Span(ms)));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<Span>();
        }
    }
}
