mod finding;
mod permissions;
mod round;
mod server;
mod wire;

use clap::Args;
use delayline_tokio::Error;

use self::finding::Finding;
use self::wire::Wire;
use crate::failure::Failure;
use crate::print;
use crate::redis::Redis;

/// Checks that Redis is there and fit for a queue, and says what to mend: version, role, eviction, persistence, memory,
/// permissions, clock, latency, and whether a job can be published, taken and acknowledged in a queue of its own, which
/// is removed after.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Checked are version, role, eviction, persistence, memory, permissions, clock, latency, and whether a job can be published,
taken and acknowledged in a queue of its own, which is removed after.
Exit codes: 0 if nothing is wrong, warnings aside; 1 if a check failed, also the first, whether Redis can be reached.

Examples:
  delayline doctor
  delayline doctor --json")]
pub struct Doctor {}

impl Doctor {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let url = redis.shared_url().ok_or(Failure::NeedsRedis("has nothing to check"))?;
        let findings = examine(redis, url).await?;
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
}

async fn examine(redis: &Redis, url: &str) -> Result<Vec<Finding>, Failure> {
    let client = match redis.builder().connect(url).await {
        Err(error @ (Error::Address(_) | Error::Name(_))) => return Err(error.into()),
        connected => connected,
    };
    let mut wire = match Wire::connect(url).await {
        Ok(wire) => wire,
        Err(why) => {
            let said = client.err().map_or(why.clone(), |error| error.to_string());
            return Ok(vec![wire::unreachable(&said, &why)]);
        }
    };
    let mut findings = vec![Finding::ok("reachable", wire.address())];
    findings.extend(server::check(&mut wire).await);
    findings.push(permissions::check(&mut wire, &redis.prefix_at(url)).await);
    findings.push(round::check(client).await);
    findings.push(wire.clock().await);
    findings.push(wire.latency().await);
    Ok(findings)
}
