mod finding;
mod permissions;
mod queues;
mod round;
mod server;
mod wire;

use clap::Args;
use delayline_tokio::{Error, Prefix};

use self::finding::Finding;
use self::queues::{Mode, Survey};
use self::wire::Wire;
use crate::cli::print;
use crate::cli::redis::Redis;
use crate::cli::stop::Stop;
use crate::failure::Failure;

const GRACE: std::time::Duration = std::time::Duration::from_secs(1);

/// Checks that Redis is there and fit for a queue, and says what to mend: version, role, eviction, persistence, memory,
/// permissions, clock, latency, whether a job can be published, taken and acknowledged in a queue of its own, which
/// is removed after, and whether what is in the queues makes sense.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Checked are version, role, eviction, persistence, memory, permissions, clock, latency, whether a job can be published,
taken and acknowledged in a queue of its own, which is removed after, and what is in the queues: 500 jobs of each unless
--thorough. --repair mends what is wrong there while workers go on: a job's broken state is rebuilt, one that cannot be read
is made a dead letter, a key of a wrong type is renamed.
Exit codes: 0 if nothing is wrong or all is mended, warnings aside; 1 if a check failed, also the first, whether Redis can
be reached.

Examples:
  delayline doctor
  delayline doctor --json
  delayline doctor --thorough
  delayline doctor --repair --dry-run
  delayline doctor --repair")]
pub struct Doctor {
    /// Look at every job, session and key, not at a sample
    #[arg(long)]
    thorough: bool,
    /// Mend what is wrong in the queues, all of which are looked at
    #[arg(long)]
    repair: bool,
    /// Change nothing, but print each change
    #[arg(long, requires = "repair")]
    dry_run: bool,
}

impl Doctor {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let url = redis.shared_url().ok_or(Failure::NeedsRedis("has nothing to check"))?;
        let findings = self.examine(redis, url).await?;
        if json {
            print::document(&findings)?;
        } else {
            findings.iter().try_for_each(print::text)?;
        }
        match findings.iter().filter(|finding| finding.is_error()).count() {
            0 => Ok(()),
            errors => Err(Failure::Unhealthy(errors)),
        }
    }

    async fn examine(&self, redis: &Redis, url: &str) -> Result<Vec<Finding>, Failure> {
        let prefix: Prefix =
            redis.prefix_at(url).parse().map_err(|error| Failure::Queue(Error::Name(error)))?;
        let stop = Stop::listen()?;
        let connecting = redis.builder().grace(GRACE).connect(url);
        let mut wire = match Wire::connect(url).await {
            Ok(wire) => wire,
            Err(why) => {
                return match connecting.await {
                    Err(error @ (Error::Address(_) | Error::Name(_))) => Err(error.into()),
                    Err(error) => Ok(vec![wire::unreachable(&error.to_string(), &why)]),
                    Ok(_) => Ok(vec![wire::unreachable(&why, &why)]),
                };
            }
        };
        let (looks, prefixed) = (self.thorough || self.repair, &prefix);
        let first = async {
            let server = server::check(&mut wire).await;
            let permissions = permissions::check(&mut wire, prefixed).await;
            let survey = Survey::begin(&mut wire, prefixed, self.mode(), looks).await;
            (server, permissions, survey)
        };
        let (server, permissions, survey) = unless_stopped(&stop, first).await?;
        let round = if permissions.is_error() {
            round::not_made("what the scripts call is missing or denied")
        } else if let Some(why) = survey.forbids_clients() {
            round::not_made(why)
        } else {
            round::check(connecting.await, &mut wire, &prefix, &stop).await?
        };
        let reachable = Finding::ok("reachable", wire.address());
        let mut findings: Vec<Finding> =
            [reachable].into_iter().chain(server).chain([permissions, round]).collect();
        let last = async {
            findings.push(wire.clock().await);
            findings.push(wire.latency().await);
            findings.extend(survey.finish(&mut wire).await);
            findings
        };
        unless_stopped(&stop, last).await
    }

    fn mode(&self) -> Mode {
        match (self.repair, self.dry_run) {
            (true, false) => Mode::Repair,
            (true, true) => Mode::DryRun,
            _ => Mode::Look,
        }
    }
}

/// What is done in steps that each leave all as it should be may end between any two.
async fn unless_stopped<T>(stop: &Stop, work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::select! {
        done = work => Ok(done),
        () = stop.clone().asked() => Err(Failure::Interrupted),
    }
}
