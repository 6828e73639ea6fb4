use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::span::{Span, SpanError};
use crate::{DELAY_MAX_MS, Invalid, JobId};

const RUNGS_MAX: usize = 64;

/// How long a job waits after each failed attempt. All lengths are in milliseconds.
///
/// As text: `none`, `fixed 5s`, `exponential 1s..1h`, `exponential 1s..1h jitter 10%`, or the rungs of a ladder,
/// `15s 3m 10m 30m 1h`. Stored in records, so variants are only ever added, at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Backoff {
    /// No wait: the next attempt may follow at once.
    None,
    /// The same wait after each attempt.
    Fixed {
        /// The wait.
        ms: u64,
    },
    /// A wait that doubles with each attempt.
    Exponential {
        /// The wait after the first attempt.
        first_ms: u64,
        /// The longest wait, jitter included.
        cap_ms: u64,
        /// By how many percent a wait may be shorter or longer, at most 100: so that jobs that failed together do not
        /// return together.
        jitter_percent: u8,
    },
    /// A wait for each attempt in turn, then the last one over and over. Without rungs, no wait.
    Ladder(Vec<u64>),
}

/// A text that is not a backoff.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BackoffError {
    /// One of its lengths of time cannot be read.
    #[error(transparent)]
    Span(#[from] SpanError),
    /// It has none of the known forms.
    #[error(
        "{text:?} is not a backoff: write none, fixed 5s, exponential 1s..1h, exponential 1s..1h jitter 10%, \
         or a ladder such as 15s 3m 1h"
    )]
    Form {
        /// The rejected text, cut to 80 characters.
        text: String,
    },
    /// An exponential backoff begins with nothing or above its longest wait.
    #[error(
        "an exponential backoff cannot go from {first} to {cap}: begin with at least 1ms and end no shorter"
    )]
    Range {
        /// The wait after the first attempt.
        first: Span,
        /// The longest wait.
        cap: Span,
    },
    /// A ladder has too many rungs.
    #[error("a ladder of {rungs} rungs is too long: write at most 64, the last one is repeated")]
    Rungs {
        /// How many there were.
        rungs: usize,
    },
}

impl Backoff {
    /// The wait in milliseconds after failed attempt number `attempt`, counted from 1.
    ///
    /// A pure function: jitter is a hash of the salt, the job and the attempt, so whoever computes it finds the same.
    pub fn delay_ms(&self, attempt: u32, salt: u64, job: &JobId) -> u64 {
        let failed_before = attempt.saturating_sub(1);
        match self {
            Backoff::None => 0,
            Backoff::Fixed { ms } => *ms,
            Backoff::Exponential { first_ms, cap_ms, jitter_percent } => {
                let doubled = first_ms.saturating_mul(2u64.saturating_pow(failed_before));
                let wait = doubled.min(*cap_ms);
                let spread = percent(wait, *jitter_percent);
                let longest = wait.saturating_add(spread).min(*cap_ms);
                between(wait - spread, longest, hash(attempt, salt, job))
            }
            Backoff::Ladder(rungs) => {
                let rung = usize::try_from(failed_before).unwrap_or(usize::MAX);
                rungs.get(rung).or(rungs.last()).copied().unwrap_or(0)
            }
        }
    }
}

impl Backoff {
    /// Checks that it can be carried out, however it was made.
    pub fn validate(&self) -> Result<(), Invalid> {
        let why = match self {
            Backoff::Fixed { ms } if *ms > DELAY_MAX_MS => "its wait is over 10 years, make it shorter",
            Backoff::Exponential { first_ms: 0, .. } => "its first wait is 0, begin with at least 1 ms",
            Backoff::Exponential { first_ms, cap_ms, .. } if first_ms > cap_ms => {
                "its first wait is longer than its longest, exchange them"
            }
            Backoff::Exponential { cap_ms, .. } if *cap_ms > DELAY_MAX_MS => {
                "its longest wait is over 10 years, make it shorter"
            }
            Backoff::Exponential { jitter_percent: 101.., .. } => "its jitter is over 100 %, make it smaller",
            Backoff::Ladder(rungs) if rungs.is_empty() => "it has no rungs, name at least one wait",
            Backoff::Ladder(rungs) if rungs.len() > RUNGS_MAX => {
                "it has more than 64 rungs, leave some out: the last one is repeated"
            }
            Backoff::Ladder(rungs) if rungs.iter().any(|rung| *rung > DELAY_MAX_MS) => {
                "a rung is over 10 years, make it shorter"
            }
            _ => return Ok(()),
        };
        Err(Invalid::Backoff { backoff: self.clone(), why })
    }
}

impl Default for Backoff {
    /// From one second to one hour, give or take a tenth.
    fn default() -> Backoff {
        Backoff::Exponential { first_ms: 1_000, cap_ms: 3_600_000, jitter_percent: 10 }
    }
}

impl FromStr for Backoff {
    type Err = BackoffError;

    fn from_str(text: &str) -> Result<Backoff, BackoffError> {
        let refused = || BackoffError::Form { text: text.chars().take(80).collect() };
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["none"] => Ok(Backoff::None),
            ["fixed", wait] => Ok(Backoff::Fixed { ms: wait.parse::<Span>()?.0 }),
            ["exponential", range, jitter @ ..] => {
                let (first, cap) = range.split_once("..").ok_or_else(refused)?;
                let jitter_percent = jitter_percent(jitter).ok_or_else(refused)?;
                exponential(first.parse()?, cap.parse()?, jitter_percent)
            }
            [first, ..] if first.starts_with(|c: char| c.is_ascii_digit()) => ladder(&words),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backoff::None => f.write_str("none"),
            Backoff::Fixed { ms } => write!(f, "fixed {}", Span(*ms)),
            Backoff::Exponential { first_ms, cap_ms, jitter_percent } => {
                write!(f, "exponential {}..{}", Span(*first_ms), Span(*cap_ms))?;
                match jitter_percent {
                    0 => Ok(()),
                    percent => write!(f, " jitter {percent}%"),
                }
            }
            Backoff::Ladder(rungs) => match rungs.split_first() {
                None => f.write_str("none"),
                Some((first, rest)) => {
                    write!(f, "{}", Span(*first))?;
                    rest.iter().try_for_each(|rung| write!(f, " {}", Span(*rung)))
                }
            },
        }
    }
}

fn jitter_percent(words: &[&str]) -> Option<u8> {
    match words {
        [] => Some(0),
        ["jitter", percent] => percent.strip_suffix('%')?.parse().ok().filter(|percent| *percent <= 100),
        _ => None,
    }
}

fn exponential(first: Span, cap: Span, jitter_percent: u8) -> Result<Backoff, BackoffError> {
    if first.0 == 0 || first > cap {
        return Err(BackoffError::Range { first, cap });
    }
    Ok(Backoff::Exponential { first_ms: first.0, cap_ms: cap.0, jitter_percent })
}

fn ladder(words: &[&str]) -> Result<Backoff, BackoffError> {
    if words.len() > RUNGS_MAX {
        return Err(BackoffError::Rungs { rungs: words.len() });
    }
    let rungs = words.iter().map(|word| word.parse::<Span>().map(|span| span.0));
    Ok(Backoff::Ladder(rungs.collect::<Result<_, _>>()?))
}

fn percent(wait: u64, percent: u8) -> u64 {
    let percent = u64::from(percent.min(100));
    wait / 100 * percent + wait % 100 * percent / 100
}

fn between(shortest: u64, longest: u64, hash: u64) -> u64 {
    let choices = u128::from(longest - shortest) + 1;
    shortest + u64::try_from((u128::from(hash) * choices) >> 64).unwrap_or(0)
}

/// FNV-1a over what must differ, then the finaliser of splitmix64, since FNV alone leaves its high bits poor.
fn hash(attempt: u32, salt: u64, job: &JobId) -> u64 {
    let (salt, attempt) = (salt.to_le_bytes(), attempt.to_le_bytes());
    let bytes = salt.iter().chain(job.as_str().as_bytes()).chain(&attempt);
    let fnv = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;
    use std::string::ToString;

    fn job(id: &str) -> JobId {
        id.parse().unwrap()
    }

    fn waits(text: &str, attempts: core::ops::RangeInclusive<u32>) -> Vec<u64> {
        let backoff: Backoff = text.parse().unwrap();
        attempts.map(|attempt| backoff.delay_ms(attempt, 7, &job("a"))).collect()
    }

    #[test]
    fn texts_read_back_as_they_were_written() {
        for text in [
            "none",
            "fixed 5s",
            "exponential 1s..1h",
            "exponential 1s..1h jitter 10%",
            "15s 3m 10m 30m 30m 1h 2h 6h 15h",
            "0s",
        ] {
            assert_eq!(text.parse::<Backoff>().unwrap().to_string(), text);
        }
        assert_eq!(Backoff::default().to_string(), "exponential 1s..1h jitter 10%");
        assert_eq!(Backoff::Ladder(Vec::new()).to_string(), "none");
        assert_eq!(" fixed   90s ".parse(), Ok(Backoff::Fixed { ms: 90_000 }));
    }

    #[test]
    fn says_what_to_write_instead() {
        for (text, message) in [
            ("fixed 5", "5 in \"5\" has no unit"),
            ("15s,3m", "is not a unit"),
            ("exponential 1h..1s", "cannot go from 1h to 1s: begin with at least 1ms and end no shorter"),
            ("exponential 0s..1s", "cannot go from 0s to 1s"),
            ("exponential 1s", "is not a backoff: write none, fixed 5s"),
            ("exponential 1s..1h jitter 101%", "is not a backoff"),
            ("exponential 1s..1h jitter 10", "is not a backoff"),
            ("linear 5s", "\"linear 5s\" is not a backoff"),
            ("", "is not a backoff"),
        ] {
            let error = text.parse::<Backoff>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        let long = "1s ".repeat(65);
        assert_eq!(long.parse::<Backoff>(), Err(BackoffError::Rungs { rungs: 65 }));
        assert!("1s ".repeat(64).parse::<Backoff>().is_ok());
    }

    #[test]
    fn each_form_waits_as_it_says() {
        assert_eq!(waits("none", 1..=3), [0, 0, 0]);
        assert_eq!(waits("fixed 5s", 1..=3), [5_000, 5_000, 5_000]);
        assert_eq!(waits("exponential 1s..5s", 0..=5), [1_000, 1_000, 2_000, 4_000, 5_000, 5_000]);
        assert_eq!(waits("15s 3m 10m", 1..=5), [15_000, 180_000, 600_000, 600_000, 600_000]);
        assert_eq!(waits("exponential 1s..1h", u32::MAX..=u32::MAX), [3_600_000]);
        assert_eq!(Backoff::Ladder(Vec::new()).delay_ms(9, 0, &job("a")), 0);
    }

    #[test]
    fn jitter_fills_its_range_and_depends_on_everything() {
        let backoff: Backoff = "exponential 1s..1h jitter 10%".parse().unwrap();
        let first: Vec<u64> = (0..2_000).map(|n| backoff.delay_ms(1, 7, &job(&format!("job-{n}")))).collect();
        assert!(first.iter().all(|wait| (900..=1_100).contains(wait)));
        assert!(first.iter().min() < Some(&905) && first.iter().max() > Some(&1_095));
        let mean = first.iter().sum::<u64>() / 2_000;
        assert!((990..=1_010).contains(&mean), "{mean}");
        let last: Vec<u64> = (0..2_000).map(|n| backoff.delay_ms(40, n, &job("a"))).collect();
        assert!(last.iter().all(|wait| (3_240_000..=3_600_000).contains(wait)));
        assert!(last.iter().filter(|wait| **wait == 3_600_000).count() < 5);
    }

    #[test]
    fn jitter_is_the_same_for_ever() {
        assert_eq!(hash(3, 42, &job("order:17")), 5_440_546_205_660_786_675);
    }

    proptest! {
        #[test]
        fn no_wait_is_beyond_its_bounds(first_ms: u64, cap_ms: u64, jitter_percent: u8, attempt: u32, salt: u64) {
            let wait = Backoff::Exponential { first_ms, cap_ms, jitter_percent }.delay_ms(attempt, salt, &job("a"));
            prop_assert!(wait <= cap_ms);
            let plain = Backoff::Exponential { first_ms, cap_ms, jitter_percent: 0 }.delay_ms(attempt, salt, &job("a"));
            prop_assert!(wait >= plain - percent(plain, jitter_percent));
            prop_assert!(wait <= plain.saturating_add(percent(plain, jitter_percent)));
        }

        #[test]
        fn ladders_read_back_as_written(rungs in prop::collection::vec(any::<u64>(), 1..=64)) {
            let ladder = Backoff::Ladder(rungs);
            prop_assert_eq!(ladder.to_string().parse(), Ok(ladder));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<Backoff>();
        }
    }
}
