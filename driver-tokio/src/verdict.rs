use delayline_core::Verdict;

use crate::Failure;

/// What a handler may return.
///
/// Nothing, or `Ok`, is an ack; an `Err` is a [`Failure`]; a [`Verdict`] is taken as it is, inside of `Ok` too.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "this is what the handler returns",
    note = "it may return `()`, a `Verdict`, or a `Result` of these whose error is a `Failure` or anything that becomes \
            one by `?`: any `Error + Send + Sync`, a `String`, an `anyhow::Error`"
)]
pub trait IntoVerdict {
    /// How the delivery ends.
    fn into_verdict(self) -> Result<Verdict, Failure>;
}

impl IntoVerdict for () {
    fn into_verdict(self) -> Result<Verdict, Failure> {
        Ok(Verdict::Ack)
    }
}

impl IntoVerdict for Verdict {
    fn into_verdict(self) -> Result<Verdict, Failure> {
        Ok(self)
    }
}

impl<T: IntoVerdict, E: Into<Failure>> IntoVerdict for Result<T, E> {
    fn into_verdict(self) -> Result<Verdict, Failure> {
        self.map_err(Into::into)?.into_verdict()
    }
}
