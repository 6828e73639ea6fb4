//! What the queue costs Redis, side by side with what it could cost at least, and with scripts of another commit. All that is
//! compared takes turns in one run, so that it meets the same machine; ratios count before times.

mod bare;
mod life;
mod scripts;

use std::fmt;
use std::path::PathBuf;

use delayline_core::wire::Value;
use serde::Serialize;

pub use life::Life;

use crate::Connection;
use crate::http_cost::Interval;

/// How something is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder `lua` of another commit, whose scripts take turns with these.
    pub against: Option<PathBuf>,
    /// How many rounds, after one that only warms up.
    pub rounds: usize,
    /// How many jobs a round, for each that is compared.
    pub jobs: usize,
}

/// One line of a table: what was measured, of whom, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured, as `batches of 100`.
    pub what: String,
    /// Whose it is: `scripts`, `against` or `bare commands`.
    pub of: &'static str,
    /// Microseconds of Redis's CPU a job.
    pub us: Interval,
    /// What part that is of the scripts' in the same round.
    pub ratio: Interval,
    /// Commands that Redis carried out for a job, those within scripts too.
    pub calls: f64,
}

/// A table of rows, as people read it.
pub struct Table<'a>(pub &'a [Row]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16}  {:<14}  {:<22}  {:<22}  calls", "", "", "µs of Redis a job", "of the scripts'")?;
        for Row { what, of, us, ratio, calls } in self.0 {
            let (us, ratio) = (us.shown(2), ratio.shown(2));
            writeln!(f, "{what:<16}  {of:<14}  {us:<22}  {ratio:<22}  {calls:.2}")?;
        }
        Ok(())
    }
}

/// What a server has spent and done so far.
#[derive(Clone, Copy)]
struct Spent {
    us: f64,
    calls: u64,
}

impl Spent {
    /// Asks the server.
    fn now(connection: &mut Connection) -> Spent {
        let cpu = info(connection, "cpu");
        let seconds = |field: &str| -> f64 {
            cpu.lines().find_map(|line| line.strip_prefix(field)?.parse().ok()).unwrap_or(f64::NAN)
        };
        let stats = info(connection, "commandstats");
        let counted = stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
        let ours = counted.filter(|(name, _)| *name != "info");
        let calls = ours.filter_map(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok()).sum();
        Spent { us: (seconds("used_cpu_user:") + seconds("used_cpu_sys:")) * 1e6, calls }
    }

    fn since(self, before: Spent) -> Spent {
        Spent { us: self.us - before.us, calls: self.calls - before.calls }
    }
}

fn info(connection: &mut Connection, section: &str) -> String {
    match connection.ask(&["INFO", section]) {
        Value::Bytes(text) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("INFO {section}: {other:?}"),
    }
}
