use std::fmt;

use serde::Serialize;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Jobs whose delivery was begun.
    pub delivered: u64,
    /// Of them, those that are done.
    pub acked: u64,
    /// Of them, those that are to be tried again.
    pub retried: u64,
    /// Of them, those that are dead letters now.
    pub died: u64,
    /// Jobs taken and given back, as there was no time to deliver them.
    pub released: u64,
    /// Jobs whose verdict may not have been recorded: they come again when their lease ends.
    pub unsettled: u64,
    /// Ended leases, expired jobs, dead letters past their retention and forwarded jobs, by tending.
    pub tended: u64,
    /// Requests that were made, deliveries included.
    pub requests: u32,
    /// Round trips to Redis that brought no answer.
    pub lost: u32,
    /// Why it ended.
    pub ended: Ended,
    /// In how many milliseconds the next thing is due of what it saw, if there is any.
    pub next_ms: Option<u64>,
    /// What went wrong last, though the run may have got over it.
    pub trouble: Option<String>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// Nothing was left that is due soon.
    #[default]
    Idle,
    /// Its time was over.
    Time,
    /// Its requests were used up.
    Requests,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { delivered, acked, retried, died, requests, .. } = self;
        write!(f, "delivered {delivered} jobs: {acked} done, {retried} to retry, {died} dead")?;
        let rest = [(self.released, "given back"), (self.unsettled, "unsettled"), (self.tended, "tended")];
        for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        write!(f, "; {requests} requests")?;
        if self.lost > 0 {
            write!(f, ", {} lost", self.lost)?;
        }
        match self.ended {
            Ended::Idle => {}
            Ended::Time => f.write_str("; out of time")?,
            Ended::Requests => f.write_str("; out of requests")?,
        }
        match (self.next_ms, &self.trouble) {
            (_, Some(trouble)) => write!(f, "; last trouble: {trouble}"),
            (Some(ms), None) => write!(f, "; next in {ms} ms"),
            (None, None) => Ok(()),
        }
    }
}
