//! Attacks on the service from one address of this machine, and what a good client at another sees meanwhile.

mod good;
mod idle;
mod kind;
mod report;
mod target;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

pub use crate::endpoint::Security;
pub use kind::Attack;
pub use report::{Report, Tally};
pub use target::{State, Target};

use good::Good;

/// How an attack is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command line, whose `serve` is attacked.
    pub program: PathBuf,
    /// How many descriptors it may open; fewer where the system allows fewer.
    pub descriptors: u64,
    /// How long the attack lasts.
    pub length: Duration,
    /// Which part of the attackers there are: one in so many.
    pub part: usize,
    /// How the service is secured.
    pub security: Security,
}

/// Within what all must be as it was, once all attackers have gone.
const BACK_WITHIN: Duration = Duration::from_secs(10);
/// How much more memory than before still counts as back: an allocator keeps some for later.
const KEPT_KIB: u64 = 64 << 10;
/// A connection of the good client that is just being closed, and one to Redis.
const KEPT_DESCRIPTORS: usize = 2;
/// How often the good client works before the attack begins.
const WARM: usize = 50;

/// Attacks a service of its own.
///
/// # Panics
/// If the service does not start, or cannot be looked at.
pub async fn run(attack: Attack, options: &Options) -> Report {
    let target = Arc::new(Target::start_with(&options.program, options.descriptors, &options.security));
    let mut report = Report::new(attack, target.descriptors());
    let mut good = Good::new(target.endpoint());
    for _ in 0..WARM {
        good.work().await;
    }
    report.before = target.state();
    let good = tokio::spawn(good.work_for(options.length));
    let tally = Arc::new(Tally::default());
    let end = Instant::now() + options.length;
    let mut attackers = JoinSet::new();
    for number in 0..(attack.attackers() / options.part).max(1) {
        attackers.spawn(attack.go_on(number, target.endpoint(), tally.clone(), end));
    }
    report.good = good.await.expect("the good client does not panic");
    report.during = target.state();
    attackers.shutdown().await;
    report.back = came_back(&target, &report).await;
    report.after = target.state();
    report.most_kib = target.most_kib();
    report.left_leased = left_leased(&target, tally.jobs_taken()).await;
    report.told = tally;
    report
}

/// How many jobs are leased to clients that have left, as soon as these are all that were `taken` or once it has been waited
/// for that.
async fn left_leased(target: &Target, taken: u64) -> Result<u64, String> {
    let end = Instant::now() + BACK_WITHIN;
    loop {
        let left = good::leased(&target.endpoint(), kind::LEFT).await;
        if left.as_ref().is_ok_and(|left| *left <= taken) || Instant::now() >= end {
            return left;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// How long it took until descriptors and memory were as before; `None` if too long.
async fn came_back(target: &Target, report: &Report) -> Option<Duration> {
    let begun = Instant::now();
    let back = async {
        loop {
            let now = target.state();
            if now.descriptors <= report.before.descriptors + KEPT_DESCRIPTORS
                && now.kib <= report.before.kib + KEPT_KIB
            {
                return begun.elapsed();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(BACK_WITHIN, back).await.ok()
}
