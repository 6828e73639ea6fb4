use std::fs;
use std::time::Instant;

use nix::sys::resource::{Usage, UsageWho, getrusage};

/// What `/proc` counts CPU time in, on every Linux of today.
const TICKS_A_SECOND: f64 = 100.0;
/// Which numbers of the line `cpu` tell what is done: user, nice, system, interrupts, and what the host took away.
const BUSY: [usize; 6] = [0, 1, 2, 5, 6, 7];

/// What the machine had done up to some moment.
pub(super) struct Moment {
    at: Instant,
    /// All that ran, in seconds of CPU; `None` where the system does not say.
    busy: Option<f64>,
    /// What of that was the bench's.
    own: f64,
}

impl Moment {
    /// With what servers that have not ended have used, in seconds of CPU.
    pub(super) fn now(servers: f64) -> Moment {
        let own = of_this_process() + of_ended_children() + servers;
        Moment { at: Instant::now(), busy: busy(), own }
    }

    /// How many CPUs others have used since then; 0 where the system does not say.
    pub(super) fn others(&self, servers: f64) -> f64 {
        let now = Moment::now(servers);
        let (Some(before), Some(busy)) = (self.busy, now.busy) else { return 0.0 };
        let others = (busy - before) - (now.own - self.own);
        (others / now.at.duration_since(self.at).as_secs_f64()).max(0.0)
    }
}

/// The CPU time of this process, in seconds.
pub(super) fn of_this_process() -> f64 {
    seconds(UsageWho::RUSAGE_SELF)
}

/// That of its children that have ended, and of theirs.
fn of_ended_children() -> f64 {
    seconds(UsageWho::RUSAGE_CHILDREN)
}

fn seconds(who: UsageWho) -> f64 {
    let usage: Usage = getrusage(who).expect("the usage of this process");
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let time = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    time(usage.user_time()) + time(usage.system_time())
}

fn busy() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    Some(BUSY.iter().filter_map(|&at| ticks.get(at)).sum::<f64>() / TICKS_A_SECOND)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn what_this_process_does_is_its_own() {
        let (begun, before) = (Instant::now(), of_this_process());
        while of_this_process() - before < 0.05 {
            black_box((0..1_000).sum::<u64>());
        }
        assert!(begun.elapsed().as_secs_f64() > 0.02, "two threads at most have run");
    }
}
