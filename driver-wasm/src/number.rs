//! Milliseconds as JavaScript's numbers, which are exact for a quarter of a million years.

/// A number of JavaScript.
#[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
pub(crate) fn number(ms: u64) -> f64 {
    ms as f64
}

/// Whole milliseconds, which are not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}
