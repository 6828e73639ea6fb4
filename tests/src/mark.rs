use std::fmt;
use std::str::FromStr;

/// A line of a worker's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What happened.
    pub what: What,
    /// To which job.
    pub id: String,
    /// The attempt, from 1.
    pub attempt: u16,
    /// The delivery, from 1.
    pub delivery: u16,
    /// When the job was due, by Redis's clock, in ms.
    pub due: u64,
    /// When it was granted, by Redis's clock, in ms.
    pub granted: u64,
    /// When this was written, by the machine's clock, in µs.
    pub at: u64,
}

/// What happens to a job at a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A run begins.
    Began,
    /// It ends well.
    Done,
    /// It ends badly.
    Failed,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mark { what, id, attempt, delivery, due, granted, at } = self;
        write!(f, "{what:?} {id} {attempt} {delivery} {due} {granted} {at}")
    }
}

impl FromStr for Mark {
    type Err = String;

    fn from_str(line: &str) -> Result<Mark, String> {
        Mark::read(line).ok_or_else(|| format!("{line:?} is no line of a record"))
    }
}

impl Mark {
    fn read(line: &str) -> Option<Mark> {
        let mut words = line.split(' ');
        let what = match words.next()? {
            "Began" => What::Began,
            "Done" => What::Done,
            "Failed" => What::Failed,
            _ => return None,
        };
        Some(Mark {
            what,
            id: words.next()?.to_string(),
            attempt: words.next()?.parse().ok()?,
            delivery: words.next()?.parse().ok()?,
            due: words.next()?.parse().ok()?,
            granted: words.next()?.parse().ok()?,
            at: words.next()?.parse().ok()?,
        })
    }
}
