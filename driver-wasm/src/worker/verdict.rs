use std::fmt::Display;

use delayline_core::{Reason, Verdict};

/// What a handler may answer.
pub trait IntoVerdict {
    /// How the delivery ends.
    fn into_verdict(self) -> Verdict;
}

impl IntoVerdict for Verdict {
    fn into_verdict(self) -> Verdict {
        self
    }
}

impl IntoVerdict for () {
    fn into_verdict(self) -> Verdict {
        Verdict::Ack
    }
}

/// An error is a failed attempt; its text is the reason, and the job's backoff says when the next one is.
impl<T: IntoVerdict, E: Display> IntoVerdict for Result<T, E> {
    fn into_verdict(self) -> Verdict {
        match self {
            Ok(done) => done.into_verdict(),
            Err(error) => Verdict::Nack { after_ms: None, reason: Reason::new(&error.to_string()) },
        }
    }
}
