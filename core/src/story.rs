//! What an engine is asked, decides and hears, in words: the one printer of the simulator and the flight recorder.
//!
//! Each line says which jobs it is about, so that the story of one job is what is left when the others are dropped.

mod commands;
mod events;
mod replies;
mod verbs;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Due, Held, JobId, QueueName, Span, Token, UnixMs};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which jobs it is about.
    pub about: About,
    /// What happened, and why: a clause without a full stop.
    pub words: String,
}

/// Which jobs a [`Line`] is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// No queue.
    Nothing,
    /// A queue, and none of its jobs in particular.
    Queue(QueueName),
    /// Every job of a queue: it is paused, configured, purged.
    Jobs(QueueName),
    /// One job.
    Job(QueueName, JobId),
}

/// Tells what happens to an engine, and remembers which jobs its handles stand for.
///
/// Times of Redis are told as they are, in milliseconds, or as an offset from a base. What is remembered is what the
/// engine itself still knows: callers that wait, and managed jobs in hand.
#[derive(Clone, Debug, Default)]
pub struct Story {
    base: Option<UnixMs>,
    held: BTreeMap<Held, About>,
    callers: BTreeMap<Token, Caller>,
}

/// Who waits for an answer.
#[derive(Clone, Debug)]
struct Caller {
    verb: &'static str,
    about: Vec<About>,
}

impl Story {
    /// Tells times of Redis as they are.
    pub fn new() -> Story {
        Story::default()
    }

    /// Tells times of Redis as offsets from `base`.
    pub fn since(base: UnixMs) -> Story {
        Story { base: Some(base), ..Story::default() }
    }

    /// A managed job is in hand since before the story began.
    pub fn holds(&mut self, held: Held, queue: QueueName, id: JobId) {
        self.held.insert(held, About::Job(queue, id));
    }

    fn at(&self, at: UnixMs) -> String {
        match self.base {
            Some(base) if at >= base => format!("at +{}", Span(at.0 - base.0)),
            Some(base) => format!("at -{}", Span(base.0 - at.0)),
            None => format!("at {at}"),
        }
    }

    fn due(&self, due: Due) -> String {
        match due {
            Due::After { ms: 0 } => "due at once".into(),
            Due::After { ms } => format!("due in {}", Span(ms)),
            Due::At(at) => format!("due {}", self.at(at)),
        }
    }

    /// A time that an answer tells, seen from when the answer was made.
    fn then(&self, at: UnixMs, now: UnixMs) -> String {
        format!("{} ({})", self.at(at), from(now, at))
    }
}

impl About {
    /// The queue, if it is about one.
    pub fn queue(&self) -> Option<&QueueName> {
        match self {
            About::Nothing => None,
            About::Queue(queue) | About::Jobs(queue) | About::Job(queue, _) => Some(queue),
        }
    }

    /// The job, if it is about one.
    pub fn id(&self) -> Option<&JobId> {
        match self {
            About::Job(_, id) => Some(id),
            _ => None,
        }
    }

    /// Whether this belongs to the story of a job.
    pub fn concerns(&self, queue: &QueueName, id: &JobId) -> bool {
        match self {
            About::Job(of, job) => of == queue && job == id,
            About::Jobs(of) => of == queue,
            About::Queue(_) | About::Nothing => false,
        }
    }

    fn line(self, words: impl Into<String>) -> Line {
        Line { about: self, words: words.into() }
    }
}

/// The line with what it is about in front: what stands alone needs it.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.about {
            About::Nothing => f.write_str(&self.words),
            About::Queue(queue) | About::Jobs(queue) => write!(f, "{queue}: {}", self.words),
            About::Job(queue, id) => write!(f, "{queue}/{id}: {}", self.words),
        }
    }
}

/// How far one time is from another.
fn from(now: UnixMs, at: UnixMs) -> String {
    match at.0.checked_sub(now.0) {
        Some(0) => "now".into(),
        Some(ms) => format!("in {}", Span(ms)),
        None => format!("{} ago", Span(now.0 - at.0)),
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn one(line: Line) -> Vec<Line> {
    Vec::from([line])
}

/// The jobs of a list, or all of a queue.
fn all_or(queue: &QueueName, ids: Option<&[JobId]>) -> Vec<About> {
    match ids {
        Some(ids) => ids.iter().map(|id| About::Job(queue.clone(), id.clone())).collect(),
        None => Vec::from([About::Jobs(queue.clone())]),
    }
}

#[cfg(test)]
mod tests;
