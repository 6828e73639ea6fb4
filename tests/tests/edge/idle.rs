//! What a run costs that finds nothing to do.

use std::time::Duration;

use delayline_tests::edge::{Outcome, Worker};
use delayline_tests::measure;

use crate::fixture::Fixture;
use crate::site::{Site, Which};

const TIMES: usize = 10;
const CRONS: u32 = 20;

/// A machine that is slow, or busy, or both shows it by what a run takes that only asks Redis once and pushes once.
#[test]
fn an_idle_run_takes_less_than_2_ms_of_cpu_or_half_more_than_two_bare_requests() {
    let Some(site) = Site::alone(Which::Example) else { return };
    let Some(bare) = Fixture::beside(&site) else { return };
    for worker in [&site.worker, &bare.worker] {
        crons_cpu(worker);
    }
    measure("the CPU of an idle run in workerd, all of its own work included", || {
        let (mut took, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let requests = site.rest.requests();
            let idle = crons_cpu(&site.worker);
            assert_eq!(site.rest.requests() - requests, u64::from(CRONS), "a request each");
            took.push(idle);
            ratios.push(idle.div_duration_f64(crons_cpu(&bare.worker)));
        }
        took.sort();
        ratios.sort_by(f64::total_cmp);
        let (least, ratio) = (took[0], ratios[TIMES / 2]);
        let found = format!("{least:?} at least, {ratio:.2} times two bare requests in the median");
        if least <= Duration::from_millis(2) || ratio <= 1.5 { Ok(found) } else { Err(found) }
    });
}

/// What a cron costs, in the mean of some.
fn crons_cpu(worker: &Worker) -> Duration {
    let before = worker.cpu();
    for _ in 0..CRONS {
        assert_eq!(worker.cron(), Outcome::Ok, "{}", worker.log());
    }
    worker.cpu().saturating_sub(before) / CRONS
}
