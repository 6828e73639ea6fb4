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
pub fn measure(what: &str, once: impl FnMut() -> Result<String, String>) {
    measured(what, once, report);
}

/// Measures, and says to `say` what came of it.
fn measured(what: &str, mut once: impl FnMut() -> Result<String, String>, mut say: impl FnMut(&str)) {
    for time in 1..=TIMES {
        let machine = Machine::now();
        let found = once();
        let since = machine.since();
        match found {
            Ok(found) => return say(&format!("{what}: {found} ({since})")),
            Err(wrong) if time < TIMES => {
                say(&format!("{what}, time {time} of {TIMES}: {wrong}; {since}"));
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
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        self.until(&Machine::now(), load.split(' ').next().unwrap_or_default())
    }

    /// What it did from here until then, in words.
    fn until(&self, then: &Machine, load: &str) -> String {
        let (Some((all, idle)), Some((all_then, idle_then))) = (self.total, then.total) else {
            return "what else the machine did is not known".to_owned();
        };
        // The time spent waiting for disks, which counts as idle, may go back.
        let (all, idle) = (all_then.saturating_sub(all), idle_then.saturating_sub(idle));
        let share = 100 - 100 * idle.min(all) / all.max(1);
        let used = then.processes.iter().map(|(id, (name, ticks))| {
            let before = self.processes.get(id).filter(|(before, _)| before == name);
            (ticks.saturating_sub(before.map_or(0, |(_, ticks)| *ticks)), name)
        });
        let mut used: Vec<(u64, &String)> = used.filter(|(ticks, _)| *ticks > 0).collect();
        used.sort_unstable();
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let seconds = |ticks: u64| ticks as f64 / TICKS_A_SECOND;
        let used =
            used.iter().rev().take(NAMED).map(|(ticks, name)| format!("{name} {:.2} s", seconds(*ticks)));
        format!(
            "meanwhile, in {:.1} s, the CPUs were busy to {share} %: {}; load {load}",
            then.at.duration_since(self.at).max(Duration::from_millis(1)).as_secs_f64(),
            used.collect::<Vec<_>>().join(", ")
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

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};

    use super::*;

    /// What is said of the machine each time.
    const MEANWHILE: &str = if cfg!(target_os = "linux") {
        "the CPUs were busy to "
    } else {
        "what else the machine did is not known"
    };

    fn machine(at: Instant, total: (u64, u64), processes: &[(u32, &str, u64)]) -> Machine {
        let processes = processes.iter().map(|&(id, name, ticks)| (id, (name.to_owned(), ticks)));
        Machine { at, total: Some(total), processes: processes.collect() }
    }

    #[test]
    fn what_holds_at_the_third_time_passes_and_each_time_tells_what_the_machine_did() {
        let (mut times, mut said) = (0, Vec::new());
        let once = || {
            times += 1;
            if times < 3 { Err(format!("{times} of 3 ms")) } else { Ok("all 3 ms".to_owned()) }
        };
        measured("a wait", once, |text| said.push(text.to_owned()));
        assert_eq!(times, 3);
        let begin =
            ["a wait, time 1 of 3: 1 of 3 ms; ", "a wait, time 2 of 3: 2 of 3 ms; ", "a wait: all 3 ms ("];
        assert_eq!(said.len(), begin.len(), "{said:?}");
        for (said, begin) in said.iter().zip(begin) {
            assert!(said.starts_with(begin) && said.contains(MEANWHILE), "{said}");
        }
    }

    #[test]
    fn what_never_holds_fails_after_exactly_three_times() {
        let mut times = 0;
        let once = || {
            times += 1;
            Err(format!("{times} of 4 ms"))
        };
        let failure = panic::catch_unwind(AssertUnwindSafe(|| measure("a wait", once)));
        let said = failure.expect_err("a failure").downcast::<String>().expect("a text");
        assert!(said.starts_with("a wait, 3 times: 3 of 4 ms; ") && said.contains(MEANWHILE), "{said}");
        assert_eq!(times, 3);
    }

    #[test]
    fn what_holds_is_measured_once() {
        let mut times = 0;
        measure("a wait", || {
            times += 1;
            Ok("nothing".to_owned())
        });
        assert_eq!(times, 1);
    }

    #[test]
    fn the_machine_is_told_by_how_busy_its_cpus_were_and_what_used_them_most() {
        let at = Instant::now();
        let then = at + Duration::from_secs(2);
        let before = machine(at, (1_000, 900), &[(1, "init", 5), (2, "cargo", 10), (3, "sh", 300)]);
        let used = [(1, "init", 5), (2, "cargo", 110), (3, "rustc", 40), (4, "redis", 25)];
        assert_eq!(
            before.until(&machine(then, (1_200, 950), &used), "3.10"),
            "meanwhile, in 2.0 s, the CPUs were busy to 75 %: cargo 1.00 s, rustc 0.40 s, redis 0.25 s; load 3.10"
        );
        let crowd = [(1, "a", 1), (2, "b", 2), (3, "c", 3), (4, "d", 4), (5, "e", 5), (6, "f", 6)];
        let said = machine(at, (0, 0), &[]).until(&machine(then, (100, 0), &crowd), "0.00");
        assert!(said.ends_with("%: f 0.06 s, e 0.05 s, d 0.04 s, c 0.03 s, b 0.02 s; load 0.00"), "{said}");
    }

    #[test]
    fn cpus_whose_idle_time_goes_back_were_busy() {
        let at = Instant::now();
        let said = machine(at, (1_000, 900), &[]).until(&machine(at, (1_100, 899), &[]), "0.00");
        assert!(said.contains("the CPUs were busy to 100 %"), "{said}");
    }
}
