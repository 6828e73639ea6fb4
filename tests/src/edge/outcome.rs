/// How workerd says an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Ok,
    /// It failed, panicked, or waited for what could never come.
    Exception,
}
