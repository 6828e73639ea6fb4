use delayline_core::{NotEditable, UnixMs};

/// What became of a job that was to be edited.
#[derive(Clone, Debug, PartialEq)]
pub enum Edited {
    /// It is as asked.
    Done {
        /// When it is due.
        due: UnixMs,
    },
    /// It stays as it is.
    NotEditable(NotEditable),
    /// There is no such job.
    Gone,
    /// Others changed it each time between its being read and its being edited. It is as they left it.
    Contended,
}
