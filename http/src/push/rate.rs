use std::fmt;
use std::str::FromStr;

use thiserror::Error;

const UNITS: [(&str, u64); 4] = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const COUNT_MAX: u32 = 1_000_000;

/// How many requests there may be in a length of time, written as `100/s`, `30/m`, `1000/h` or `5/d`. They are spread
/// evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u32,
    unit: &'static str,
    unit_ms: u64,
}

/// A text that is no [`Rate`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{text:?} is no rate: write 1 to 1000000 requests a second, minute, hour or day, as in 100/s, 30/m, 9/h or 5/d"
)]
pub struct RateError {
    /// The rejected text, cut to 80 characters.
    pub text: String,
}

impl Rate {
    /// The time from one request to the next, in microseconds.
    pub fn interval_us(&self) -> u64 {
        (self.unit_ms * 1_000 / u64::from(self.count)).max(1)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Rate, RateError> {
        let refused = || RateError { text: text.chars().take(80).collect() };
        let (count, unit) = text.split_once('/').ok_or_else(refused)?;
        let (unit, unit_ms) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(refused)?;
        let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        let count = count.parse().ok().filter(|count| is_number && (1..=COUNT_MAX).contains(count));
        Ok(Rate { count: count.ok_or_else(refused)?, unit, unit_ms })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_back_as_it_was_written() {
        for (text, interval_us) in [
            ("1/s", 1_000_000),
            ("100/s", 10_000),
            ("1000000/s", 1),
            ("30/m", 2_000_000),
            ("1000/h", 3_600_000),
            ("1/d", 86_400_000_000),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.to_string().as_str(), rate.interval_us()), (text, interval_us));
        }
    }

    #[test]
    fn refuses_what_is_no_rate() {
        for text in
            ["", "5", "/s", "5/", "0/s", "+5/s", "-1/s", "1.5/s", "5/sec", "1000001/s", "99999999999/s"]
        {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains("is no rate: write 1 to 1000000"), "{error}");
        }
    }
}
