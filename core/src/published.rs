use crate::{Answer, JobId, UnixMs};

/// A job that was accepted, now or before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name.
    pub id: JobId,
    /// When it is due, by Redis's clock; `None` for a duplicate, whose job keeps its own due time.
    pub due: Option<UnixMs>,
    /// Whether the id was in use, so that nothing changed.
    pub duplicate: bool,
    /// Whether it took the place of a waiting job.
    pub replaced: bool,
}

impl TryFrom<Answer> for Published {
    type Error = Answer;

    /// Any other answer comes back as it is.
    fn try_from(answer: Answer) -> Result<Published, Answer> {
        match answer {
            Answer::Published { id, due, replaced } => {
                Ok(Published { id, due: Some(due), duplicate: false, replaced })
            }
            Answer::Duplicate { id } => Ok(Published { id, due: None, duplicate: true, replaced: false }),
            other => Err(other),
        }
    }
}
