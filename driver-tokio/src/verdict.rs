use std::fmt::Display;

use delayline_core::{Reason, Verdict};

/// What a handler may return.
///
/// Nothing, or `Ok`, is an ack; an `Err` is a failed attempt, whose text is kept as its reason and whose delay the job's
/// backoff decides; a [`Verdict`] is taken as it is, inside of `Ok` too.
pub trait IntoVerdict {
    /// How the delivery ends.
    fn into_verdict(self) -> Verdict;
}

impl IntoVerdict for () {
    fn into_verdict(self) -> Verdict {
        Verdict::Ack
    }
}

impl IntoVerdict for Verdict {
    fn into_verdict(self) -> Verdict {
        self
    }
}

impl<T: IntoVerdict, E: Display> IntoVerdict for Result<T, E> {
    fn into_verdict(self) -> Verdict {
        match self {
            Ok(value) => value.into_verdict(),
            Err(error) => Verdict::Nack { after_ms: None, reason: Reason::new(&format!("{error:#}")) },
        }
    }
}
