//! What every store may do with jobs, written without looking at one: it is told each command as it is carried out, with
//! the reply, and each thing that an engine tells its application.

mod changes;
mod damage;
mod endings;
mod grants;
mod ledger;
mod witness;

use std::fmt;

use delayline_core::{Fence, JobId, QueueName, UnixMs};

pub(super) use ledger::{Counts, Ledger};
pub(super) use witness::Witness;

use super::names;

/// A queue and a job of it.
pub(super) type Key = (usize, u32);

/// One publish of a job's name: each has a version of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instance {
    pub(super) key: Key,
    pub(super) version: u64,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub oracle: &'static str,
    /// What was seen.
    pub what: String,
}

pub(super) type Checked<T = ()> = Result<T, Violation>;

macro_rules! ensure {
    ($holds:expr, $oracle:literal, $($what:tt)+) => {
        if !$holds {
            return Err($crate::sim::model::Violation { oracle: $oracle, what: format!($($what)+) });
        }
    };
}
pub(super) use ensure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting { due: UnixMs },
    Leased { fence: Fence, until: UnixMs, due: UnixMs },
    Dead { at: UnixMs },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.oracle, self.what)
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instance { key: (queue, job), version } = self;
        write!(f, "{} of {}, publish {version},", names::job(*job), names::queue(*queue))
    }
}

/// The key of a job by its names.
pub(super) fn key_of(queue: &QueueName, id: &JobId) -> Checked<Key> {
    let job = names::number(id);
    let (Some(queue), Some(job)) = (names::index(queue), job) else {
        ensure!(false, "nothing is made up", "{id} of {queue} was never published");
        return Ok((0, 0));
    };
    Ok((queue, job))
}
