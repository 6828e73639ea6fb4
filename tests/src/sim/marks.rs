use std::collections::BTreeMap;

/// The rare paths that runs are to reach, after `TigerBeetle`'s marks: a search says which ones none did.
pub const PATHS: [&str; 44] = [
    "a repeat is answered by its session",
    "a batch is superseded",
    "a script is not known",
    "a refusal",
    "a half-run pipeline",
    "a duplicate arrives late",
    "a reply arrives after its flight was given up",
    "an engine crashes with jobs in hand",
    "a zombie's verdict is stale",
    "a verdict is repeated",
    "a verdict finds its job gone",
    "a lease ends and its job is granted again",
    "a renewal",
    "a renewal is too late",
    "an engine abandons a job",
    "a job dies of its attempts",
    "a dead letter runs again",
    "a dead letter is purged",
    "a job expires while it is held",
    "waiting jobs expire",
    "a waiting job is replaced",
    "a replacement finds a held job",
    "a cancel takes a job",
    "a cancel finds a held job",
    "a reschedule moves a job",
    "a reschedule would outlive the job",
    "a queue is full",
    "a paused queue is asked",
    "a publish ends unknown",
    "a publish ends not sent",
    "a take hands out jobs",
    "a failover loses an acknowledged publish",
    "a failover loses a verdict",
    "jobs are forwarded",
    "an edge run uses up its credit",
    "an edge run meets its deadline",
    "a request reaches a demoted primary",
    "a full Redis is emptied",
    "an answer is nonsense",
    "an engine panics with jobs in hand",
    "many processes come and go",
    "a clock steps while who tended is down",
    "a value is written over",
    "a take ends for want of an answer",
];

/// How often each path was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<&'static str, u64>);

impl Marks {
    /// A path is reached.
    ///
    /// # Panics
    /// If it is none of [`PATHS`]: a path that is not listed would not be missed.
    pub fn reach(&mut self, path: &'static str) {
        debug_assert!(PATHS.contains(&path), "{path:?} is listed");
        *self.0.entry(path).or_default() += 1;
    }

    /// Adds what another run reached.
    pub fn add(&mut self, other: &Marks) {
        for (path, times) in &other.0 {
            *self.0.entry(path).or_default() += times;
        }
    }

    /// Each path that was reached, and how often.
    pub fn reached(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(path, times)| (*path, *times))
    }

    /// The paths that were not reached.
    pub fn missed(&self) -> Vec<&'static str> {
        PATHS.into_iter().filter(|path| !self.0.contains_key(path)).collect()
    }
}
