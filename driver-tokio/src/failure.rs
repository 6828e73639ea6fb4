use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use delayline_core::{Reason, Verdict};

use crate::BoxError;
use crate::invalid::millis;

/// Why a handler did not finish its job, and what is to happen next.
///
/// Any error becomes one by `?`, and means: again, after the delay that the job's backoff says, until its attempts are
/// used up. The others are said outright. It is no [`Error`](std::error::Error) itself, so that every error can be
/// turned into it.
///
/// ```
/// use std::time::Duration;
/// use delayline_tokio::Failure;
///
/// async fn charge(card: &str) -> Result<(), Failure> {
///     if card.is_empty() {
///         return Err(Failure::bury("there is no card to charge")); // a dead letter at once
///     }
///     let amount: u64 = "1200".parse()?; // any error: again, by the backoff
///     if amount > 1000 {
///         return Err(Failure::snooze(Duration::from_secs(60))); // later, without spending the attempt
///     }
///     Err(Failure::retry_after(Duration::from_secs(30), "the bank said 429"))
/// }
/// # drop(charge(""));
/// ```
pub struct Failure {
    next: Next,
    error: Option<BoxError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Retry,
    RetryAfter(Duration),
    Snooze(Duration),
    Bury,
}

impl Failure {
    /// The job is dead at once: trying again would not help.
    pub fn bury(error: impl Into<BoxError>) -> Failure {
        Failure { next: Next::Bury, error: Some(error.into()) }
    }

    /// The attempt failed, and the next is to come after this delay, whatever the backoff says.
    pub fn retry_after(delay: Duration, error: impl Into<BoxError>) -> Failure {
        Failure { next: Next::RetryAfter(delay), error: Some(error.into()) }
    }

    /// Nothing failed: the job is to come again after this delay, and the attempt does not count.
    pub fn snooze(delay: Duration) -> Failure {
        Failure { next: Next::Snooze(delay), error: None }
    }

    pub(crate) fn panicked(text: &str) -> Failure {
        Failure::from(format!("panicked: {text}"))
    }

    /// The error, unless it is a snooze.
    pub fn error(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.error.as_deref()
    }

    /// As tower's services have it: the error itself, unless something is to happen that it does not say.
    pub(crate) fn into_error(self) -> BoxError {
        match self {
            Failure { next: Next::Retry, error: Some(error) } => error,
            Failure { next, error: Some(error) } if said_within(&*error) == Some(next) => error,
            failure => Failed(failure).into(),
        }
    }

    /// What it comes to unless the worker has another policy.
    pub fn verdict(&self) -> Verdict {
        let reason = || Reason::new(&self.to_string());
        match self.next {
            Next::Retry => Verdict::Nack { after_ms: None, reason: reason() },
            Next::RetryAfter(delay) => Verdict::Nack { after_ms: Some(millis(delay)), reason: reason() },
            Next::Snooze(delay) => Verdict::Snooze { after_ms: millis(delay) },
            Next::Bury => Verdict::Bury { reason: reason() },
        }
    }
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        match error.downcast::<Failed>() {
            Ok(failed) => failed.0,
            Err(error) => Failure { next: said_within(&*error).unwrap_or(Next::Retry), error: Some(error) },
        }
    }
}

/// What a failure says is to happen next, that a layer has made the cause of an error of its own.
fn said_within(error: &(dyn StdError + 'static)) -> Option<Next> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(Failed(failure)) = error.downcast_ref() {
            return Some(failure.next);
        }
        cause = error.source();
    }
    None
}

/// The error and its causes, each once.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(error) = &self.error else { return f.write_str("snoozed") };
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let said = error.to_string();
            if !text.contains(&said) {
                text = format!("{text}: {said}");
            }
            cause = error.source();
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure").field("next", &self.next).field("error", &self.error).finish()
    }
}

/// A failure on its way through tower's services, which speak of errors.
#[derive(Debug)]
struct Failed(Failure);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Failed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.error.as_deref().map(|error| error as _)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the mail was not sent")]
    struct Outer(#[source] io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("the mail was not sent: {0}")]
    struct Telling(#[source] io::Error);

    #[test]
    fn a_reason_tells_every_cause_once() {
        for failure in [
            Failure::from(Outer(io::Error::other("no route to host"))),
            Failure::from(Telling(io::Error::other("no route to host"))),
        ] {
            assert_eq!(failure.to_string(), "the mail was not sent: no route to host");
        }
    }

    #[test]
    fn each_kind_has_its_verdict() {
        let reason = Reason::new("no");
        for (failure, verdict) in [
            (Failure::from("no"), Verdict::Nack { after_ms: None, reason: reason.clone() }),
            (
                Failure::retry_after(Duration::from_micros(1_500), "no"),
                Verdict::Nack { after_ms: Some(2), reason: reason.clone() },
            ),
            (Failure::bury("no"), Verdict::Bury { reason }),
            (Failure::snooze(Duration::from_secs(1)), Verdict::Snooze { after_ms: 1_000 }),
        ] {
            assert_eq!(failure.verdict(), verdict);
            assert_eq!(
                Failure::from(failure.into_error()).verdict(),
                verdict,
                "it survives the way through tower"
            );
        }
    }
}
