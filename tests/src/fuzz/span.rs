use delayline_core::{Backoff, QueueConfig, Span};

/// A length of time and a backoff read back as they are written, and no wait is beyond what the backoff names.
///
/// # Panics
/// If not.
pub fn span(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<Span>() {
        Ok(span) => assert_eq!(span.to_string().parse(), Ok(span)),
        Err(error) => assert!(error.to_string().chars().count() < 1_000, "a short complaint"),
    }
    match text.parse::<Backoff>() {
        Ok(backoff) => read(&backoff),
        Err(error) => assert!(error.to_string().chars().count() < 1_000, "a short complaint"),
    }
}

fn read(backoff: &Backoff) {
    assert_eq!(backoff.to_string().parse(), Ok(backoff.clone()));
    let config = QueueConfig { backoff: Some(backoff.clone()), ..QueueConfig::default() };
    assert_eq!(config.validate(), Ok(()));
    waits(backoff);
}

/// Every wait is one that the backoff allows.
///
/// # Panics
/// If not.
pub(super) fn waits(backoff: &Backoff) {
    let longest = match backoff {
        Backoff::None => 0,
        Backoff::Fixed { ms } => *ms,
        Backoff::Exponential { cap_ms, .. } => *cap_ms,
        Backoff::Ladder(rungs) => rungs.iter().copied().max().unwrap_or(0),
    };
    let job = "job".parse().expect("an id");
    for attempt in [0, 1, 2, 7, 63, 64, 65, 999, u32::MAX] {
        let wait = backoff.delay_ms(attempt, attempt.into(), &job);
        assert!(wait <= longest, "{backoff} waits {wait} ms after attempt {attempt}");
    }
}
