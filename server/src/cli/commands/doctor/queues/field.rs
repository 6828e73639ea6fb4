use delayline_tokio::{Backoff, Forward, UnixMicros};

use super::whole;

/// The fields of `meta` that say one thing each; what counts is recounted by a script.
pub(super) const FIELDS: [&str; 18] = [
    "born",
    "gate",
    "cfgver",
    "fence",
    "mean",
    "sessions",
    "sweep",
    "broken",
    "paused",
    "attempts",
    "backoff",
    "retention",
    "expire",
    "max_jobs",
    "max_bytes",
    "forward",
    "push",
    "forward_error",
];
const SWEEP_AHEAD_MS: u64 = 3_600_000;
const CURSOR_DIGITS: usize = 19;
const ERROR_BYTES: usize = 256;
const PUSH_BYTES: usize = 4_096;

/// What a field that cannot be ought to be.
pub(super) enum Right {
    /// This.
    Text(String),
    /// Not there, so that what is usual holds.
    Absent,
}

/// What the field ought to be, if it cannot be what it is.
pub(super) fn mended(name: &str, raw: &[u8], now: UnixMicros) -> Option<Right> {
    let text = std::str::from_utf8(raw).ok();
    let number = text.and_then(whole);
    let within = |low: u64, high: u64| number.is_some_and(|number| (low..=high).contains(&number));
    let (fits, right) = match name {
        "born" => (within(1, u64::MAX), Right::Text(now.0.to_string())),
        "fence" => (number.is_some(), Right::Text(now.0.to_string())),
        "cfgver" => (number.is_some(), Right::Text("1".to_owned())),
        "sweep" => {
            let parts = text.and_then(|text| text.split_once(' '));
            let fits = |(at, cursor): (&str, &str)| {
                let digits = cursor.bytes().all(|byte| byte.is_ascii_digit());
                let next = whole(at).is_some_and(|at| at <= now.floor_ms().0 + SWEEP_AHEAD_MS);
                next && digits && (1..=CURSOR_DIGITS).contains(&cursor.len())
            };
            (parts.is_some_and(fits), Right::Absent)
        }
        "gate" => (!raw.is_empty(), Right::Absent),
        "paused" => (text == Some("1"), Right::Absent),
        "attempts" => (within(1, 999), Right::Absent),
        "backoff" => (text.is_some_and(|text| text.parse::<Backoff>().is_ok()), Right::Absent),
        "retention" => (within(1, u64::MAX), Right::Absent),
        "expire" => (text == Some("dead"), Right::Absent),
        "forward" => (text.is_some_and(|text| text.parse::<Forward>().is_ok()), Right::Absent),
        "push" => (text.is_some_and(|text| (1..=PUSH_BYTES).contains(&text.len())), Right::Absent),
        "forward_error" => (text.is_some_and(|text| text.len() <= ERROR_BYTES), Right::Absent),
        _ => (number.is_some(), Right::Absent),
    };
    (!fits).then_some(right)
}
