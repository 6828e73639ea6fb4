use delayline_core::{Command, Config, Identity, Millis, Pumping, Reply};

use crate::bed::{Bed, worker};

const PUMP_LEASE_MS: u64 = 30_000;

/// After a step of more than 10 min whoever waits has waited too long, by the scripts: nobody is woken.
#[test]
fn after_a_step_forward_an_idle_worker_learns_of_a_job_within_half_a_pump_lease() {
    let mut bed = Bed::new([Config { poll_ms: 540_000, ..worker("orders") }, Config::default()]);
    bed.pass(100_000);
    bed.ahead_ms = 3_600_000;
    bed.publish(1, 1, "orders", 0);
    let published = bed.now;
    bed.pass(PUMP_LEASE_MS);
    let runs = bed.runs(0);
    assert_eq!(runs.len(), 1, "{runs:?}");
    let late_ms = runs[0].0.since(published);
    assert!(late_ms <= PUMP_LEASE_MS / 2, "{late_ms} ms");
}

/// Whatever a lease says: who stands by looks again within the time that a lease may last.
#[test]
fn a_standby_never_sleeps_beyond_a_pump_lease() {
    let mut bed = Bed::new([Config { pump: Pumping::Always, ..Config::default() }]);
    bed.instead = Box::new(move |command| match command {
        Command::Peek { .. } => {
            let time = delayline_core::UnixMicros(1_763_700_000_000_000);
            let holder = Some((Identity(99), time.floor_ms() + 3_600_000));
            Some(Reply::Peeked { time, holder, agenda: Vec::new(), firsts: Vec::new() })
        }
        _ => None,
    });
    bed.pass(10 * PUMP_LEASE_MS);
    let is_peek = |command: &Command| matches!(command, Command::Peek { .. });
    let peeks = bed.nodes[0].trips.iter().filter(|(_, commands)| commands.iter().any(is_peek));
    let peeks: Vec<Millis> = peeks.map(|(at, _)| *at).collect();
    let longest = peeks.windows(2).map(|pair| pair[1].since(pair[0])).max();
    assert!(longest.is_some_and(|ms| ms <= PUMP_LEASE_MS), "{longest:?}");
}
