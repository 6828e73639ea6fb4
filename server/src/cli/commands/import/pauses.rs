use std::fmt;
use std::str::FromStr;

use delayline_tokio::Stats;

/// What the journal notes of a queue that jobs are moved to.
///
/// The queue is paused as long as entries may stand in the journal whose jobs are published already: nobody can take and
/// acknowledge such a job then, so a run that goes on from the journal finds it by its id instead of publishing it anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// It is about to be paused; nothing was published to it yet.
    Pausing,
    /// The import has paused it, which was this version of its config. `born` is when the queue came to be.
    Paused { born: u64, cfgver: u64 },
    /// It was paused before, so it stays so.
    WasPaused { born: u64 },
}

/// What a note of a former run means, now that the queue is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The queue is to be paused.
    Pause,
    /// It has been paused all the time.
    Kept,
    /// It was resumed or configured meanwhile.
    Touched,
    /// It is another queue of that name: in another Redis, or made anew.
    Another,
}

impl Note {
    pub(super) fn judge(self, stats: &Stats) -> Verdict {
        let is_of = |born: u64| stats.born.is_some_and(|now| now.0 == born);
        match self {
            Note::Pausing => Verdict::Pause,
            Note::Paused { born, .. } | Note::WasPaused { born } if !is_of(born) => Verdict::Another,
            Note::Paused { cfgver, .. } if stats.paused && stats.cfgver == cfgver => Verdict::Kept,
            Note::WasPaused { .. } if stats.paused => Verdict::Kept,
            Note::Paused { .. } | Note::WasPaused { .. } => Verdict::Touched,
        }
    }

    /// Whether the pause is the import's, to be ended by it.
    pub(super) fn is_own(self) -> bool {
        !matches!(self, Note::WasPaused { .. })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Pausing => f.write_str("pausing"),
            Note::Paused { born, cfgver } => write!(f, "paused {born} {cfgver}"),
            Note::WasPaused { born } => write!(f, "was-paused {born}"),
        }
    }
}

impl FromStr for Note {
    type Err = ();

    fn from_str(text: &str) -> Result<Note, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |word: &str| word.parse().map_err(|_| ());
        match words[..] {
            ["pausing"] => Ok(Note::Pausing),
            ["paused", born, cfgver] => Ok(Note::Paused { born: number(born)?, cfgver: number(cfgver)? }),
            ["was-paused", born] => Ok(Note::WasPaused { born: number(born)? }),
            _ => Err(()),
        }
    }
}
