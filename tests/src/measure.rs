use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::report;

/// How often something is measured before it counts as too much.
const TIMES: u32 = 3;
/// How many processes are named that used the CPUs meanwhile.
const NAMED: usize = 5;
/// What `/proc` counts CPU time in, on every Linux of today.
const TICKS_A_SECOND: f64 = 100.0;

/// Measures what depends on how fast the machine is, up to three times: `Ok` says what was found, `Err` what is wrong with
/// it. Each time it is told what else the machine did.
///
/// # Panics
/// If it was wrong each time.
pub fn measure(what: &str, mut once: impl FnMut() -> Result<String, String>) {
    for time in 1..=TIMES {
        let machine = Machine::now();
        let found = once();
        let since = machine.since();
        match found {
            Ok(found) => return report(&format!("{what}: {found} ({since})")),
            Err(wrong) if time < TIMES => {
                report(&format!("{what}, time {time} of {TIMES}: {wrong}; {since}"));
            }
            Err(wrong) => panic!("{what}, {TIMES} times: {wrong}; {since}"),
        }
    }
}

/// What the machine has done so far.
struct Machine {
    at: Instant,
    /// What all CPUs together have done, and for how long they did nothing, in ticks.
    total: Option<(u64, u64)>,
    processes: BTreeMap<u32, (String, u64)>,
}

impl Machine {
    fn now() -> Machine {
        Machine { at: Instant::now(), total: total(), processes: processes() }
    }

    /// What it has done since, in words.
    fn since(&self) -> String {
        let (Some((all, idle)), Some((all_now, idle_now))) = (self.total, total()) else {
            return "what else the machine did is not known".to_owned();
        };
        let share = 100 - 100 * (idle_now - idle).min(all_now - all) / (all_now - all).max(1);
        let used = processes().into_iter().map(|(id, (name, ticks))| {
            let before = self.processes.get(&id).filter(|(before, _)| *before == name);
            (ticks.saturating_sub(before.map_or(0, |(_, ticks)| *ticks)), name)
        });
        let mut used: Vec<(u64, String)> = used.filter(|(ticks, _)| *ticks > 0).collect();
        used.sort_unstable();
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let seconds = |ticks: u64| ticks as f64 / TICKS_A_SECOND;
        let used =
            used.iter().rev().take(NAMED).map(|(ticks, name)| format!("{name} {:.2} s", seconds(*ticks)));
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        format!(
            "meanwhile, in {:.1} s, the CPUs were busy to {share} %: {}; load {}",
            self.at.elapsed().max(Duration::from_millis(1)).as_secs_f64(),
            used.collect::<Vec<_>>().join(", "),
            load.split(' ').next().unwrap_or_default()
        )
    }
}

fn total() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    Some((ticks.iter().take(8).sum(), ticks.get(3)? + ticks.get(4)?))
}

/// All processes, by their ids: what they are called and the CPU time they used, in ticks.
fn processes() -> BTreeMap<u32, (String, u64)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let used = ids.filter_map(|id| {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name stands in brackets and may have brackets and blanks of its own.
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        let mut times = rest.split_whitespace().skip(11).map_while(|number| number.parse::<u64>().ok());
        Some((id, (name.to_owned(), times.next()? + times.next()?)))
    });
    used.collect()
}
