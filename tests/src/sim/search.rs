use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::summary::{Part, Summary};
use super::{Failure, Mistake, Plan, Report, Story, run, run_on, shards, shrink};
use crate::{RedisServer, RedisStore};

/// So many seeds are searched, and written down, at once.
const PART: u64 = 1_000;
/// The same, where a seed takes longer.
const PART_ON_REDIS: u64 = 10;
/// Every so many seeds one is run twice, to see that it does the same.
const TWICE_EVERY: u64 = 50;

/// How plans are searched for one that fails.
#[derive(Clone, Debug)]
pub struct Search {
    /// How many seeds are run at the same time.
    pub threads: usize,
    /// A mistake that is planted.
    pub bug: Option<Mistake>,
    /// Whether the store is a real server.
    pub redis: bool,
}

/// A seed that failed.
#[derive(Debug)]
pub struct Found {
    /// Which.
    pub seed: u64,
    /// How.
    pub failure: Box<Failure>,
    options: String,
}

impl Default for Search {
    fn default() -> Search {
        Search { threads: 1, bug: None, redis: false }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { seed, failure, options } = self;
        write!(
            f,
            "seed {seed} {failure}\nreplay: cargo run --release -p delayline-tests --bin sim -- --seed {seed}{options} --trace"
        )
    }
}

impl Search {
    /// Runs the plans of a range of seeds, until one fails: the lowest that is known to.
    ///
    /// # Errors
    /// That one.
    ///
    /// # Panics
    /// If a server is lost, or a seed does not do the same twice.
    pub fn all(&self, seeds: Range<u64>) -> Result<Summary, Found> {
        self.parts(&self.divided(seeds), |_| ())
    }

    /// A range in the parts that it is run in.
    pub(super) fn divided(&self, seeds: Range<u64>) -> Vec<Range<u64>> {
        let part = match (self.redis, self.bug) {
            (true, _) => PART_ON_REDIS,
            (_, Some(_)) => PART / 50,
            _ => PART,
        };
        let starts = (seeds.start..seeds.end).step_by(usize::try_from(part).unwrap_or(1));
        starts.map(|from| from..(from + part).min(seeds.end)).collect()
    }

    /// Runs parts, and tells of each that is done.
    pub(super) fn parts(&self, parts: &[Range<u64>], done: impl Fn(&Part) + Sync) -> Result<Summary, Found> {
        let (next, began) = (AtomicUsize::new(0), Instant::now());
        let all: Mutex<(Vec<Part>, Vec<Found>)> = Mutex::default();
        std::thread::scope(|scope| {
            let work = || {
                let runner = Runner::new(self);
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = runner.part(part.clone());
                    let mut all = all.lock().expect("no thread panicked");
                    match outcome {
                        Ok(part) => {
                            done(&part);
                            all.0.push(part);
                        }
                        Err(found) => {
                            next.store(usize::MAX / 2, Ordering::Relaxed);
                            all.1.push(found);
                        }
                    }
                }
            };
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
        let (parts, found) = all.into_inner().expect("no thread panicked");
        match found.into_iter().min_by_key(|found| found.seed) {
            Some(found) => Err(found),
            None => Ok(Summary::new(parts, began.elapsed())),
        }
    }

    /// Plays one plan.
    ///
    /// # Errors
    /// The first promise that was broken.
    pub fn play(&self, plan: &Plan, story: Option<Story>) -> Result<Report, Box<Failure>> {
        Runner::new(self).play(plan, story)
    }

    /// The smallest plan that was found to fail in the same way.
    pub fn shrunk(&self, found: &Found) -> Plan {
        let (runner, oracle) = (Runner::new(self), found.failure.violation.oracle);
        let fails =
            |plan: &Plan| runner.play(plan, None).is_err_and(|failure| failure.violation.oracle == oracle);
        shrink(&Plan::draw(found.seed), fails)
    }

    fn options(&self) -> String {
        let bug = self.bug.map_or_else(String::new, |bug| format!(" --bug {bug}"));
        format!("{}{bug}", if self.redis { " --redis" } else { "" })
    }
}

/// One thread of a search, with a server of its own where it needs one.
struct Runner<'a> {
    search: &'a Search,
    server: Option<RedisServer>,
}

impl Runner<'_> {
    fn new(search: &Search) -> Runner<'_> {
        Runner { search, server: search.redis.then(RedisServer::plain) }
    }

    fn part(&self, seeds: Range<u64>) -> Result<Part, Found> {
        let (began, mut part) = (Instant::now(), Part::of(seeds.clone()));
        for seed in seeds {
            let plan = Plan::draw(seed);
            let played = self.play(&plan, None);
            let report = played.map_err(|failure| Found { seed, failure, options: self.search.options() })?;
            if seed.is_multiple_of(TWICE_EVERY) && self.search.bug.is_none() {
                let again = self.play(&plan, None).map(|report| report.trace).ok();
                assert_eq!(Some(report.trace), again, "seed {seed} does something else the second time");
            }
            part.add(&report);
        }
        part.took(began.elapsed());
        Ok(part)
    }

    fn play(&self, plan: &Plan, story: Option<Story>) -> Result<Report, Box<Failure>> {
        let Some(server) = &self.server else { return run(plan, self.search.bug, story) };
        let mut redis = RedisStore::new(server, shards(plan));
        redis.plant(self.search.bug.and_then(Mistake::of_store));
        run_on(redis, plan, story)
    }
}
