use delayline_tokio::redis::cmd;

use super::finding::Finding;
use super::wire::{self, Wire};

const CHECK: &str = "permissions";
/// The SHA-1 of no script.
const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";
/// What the scripts and their callers need, with arguments to ask about: `K` stands for a key, `D` for that of the
/// deployment, `C` for a channel.
const NEEDED: [&str; 30] = [
    "EVALSHA 0000000000000000000000000000000000000000 1 K",
    "EVAL return 1 K",
    "TIME",
    "GET K",
    "SET K v",
    "HGET K f",
    "HMGET K f",
    "HGETALL K",
    "HSET K f v",
    "HSETNX K f v",
    "HINCRBY K f 1",
    "HDEL K f",
    "ZADD K 1 m",
    "ZCARD K",
    "ZCOUNT K 0 1",
    "ZMSCORE K m",
    "ZPOPMIN K",
    "ZRANGE K 0 1",
    "ZRANGEBYSCORE K 0 1",
    "ZREM K m",
    "ZREMRANGEBYSCORE K 0 1",
    "ZSCORE K m",
    "UNLINK K",
    "PUBLISH C m",
    "SUBSCRIBE C",
    "UNSUBSCRIBE C",
    "PING",
    "INFO server",
    "HSCAN K 0",
    "HSETNX D f v",
];

/// Asks the server whether its user may do what the scripts do.
pub(super) async fn check(wire: &mut Wire, prefix: &str) -> Finding {
    let user: Result<String, String> = wire.ask(cmd("ACL").arg("WHOAMI")).await;
    let Ok(user) = user else { return probe(wire, prefix).await };
    let mut refused = Vec::new();
    for needed in NEEDED {
        match dry_run(wire, &user, needed, prefix).await {
            Ok(None) => {}
            Ok(Some(why)) => refused.push(why),
            Err(_) => return probe(wire, prefix).await,
        }
    }
    match refused.first() {
        None => {
            Finding::ok(CHECK, format!("user {user} may run all {} commands that are needed", NEEDED.len()))
        }
        Some(why) => {
            let count = format!("{} of {} commands are refused", refused.len(), NEEDED.len());
            denied(&format!("{count}: {why}"), &refused, &user, prefix)
        }
    }
}

/// Why the server would refuse the command, if it would.
async fn dry_run(wire: &mut Wire, user: &str, needed: &str, prefix: &str) -> Result<Option<String>, String> {
    let mut command = cmd("ACL");
    command.arg("DRYRUN").arg(user);
    for word in needed.split(' ') {
        match word {
            "K" => command.arg(format!("{{{prefix}:0.0}}:doctor:meta")),
            "D" => command.arg(format!("{{{prefix}}}:config")),
            "C" => command.arg(format!("{{{prefix}:0.0}}:head")),
            word => command.arg(word),
        };
    }
    let answer: String = wire.ask(&command).await?;
    Ok((answer != "OK").then_some(answer))
}

/// Runs what can be run without effect, on a server that does not tell permissions.
async fn probe(wire: &mut Wire, prefix: &str) -> Finding {
    let by_hash: Result<(), String> = wire.ask(cmd("EVALSHA").arg(NO_SCRIPT).arg(0)).await;
    let by_source: Result<(), String> = wire.ask(cmd("EVAL").arg("return redis.call('TIME')").arg(0)).await;
    let refusals = [by_hash, by_source].into_iter().filter_map(Result::err);
    match refusals.into_iter().find(|why| wire::is_denied(why)) {
        Some(why) => denied(&why, &[], "USER", prefix),
        None => Finding::warning(
            CHECK,
            "scripts may be run, but this server does not tell what they may do",
            "nothing, if the round trip works; ACL DRYRUN of Redis 7 would tell",
        ),
    }
}

/// That something is refused, and what would allow it: patterns only for who lacks them, since a server does not add one
/// to `~*`.
fn denied(why: &str, refused: &[String], user: &str, prefix: &str) -> Finding {
    let lacks = |what: &str| refused.iter().any(|why| why.contains(what));
    let mut rules = vec!["+@read +@write +@scripting +@pubsub +@connection +time +info".to_string()];
    if lacks(" key") {
        rules.push(format!("~{{{prefix}:* ~{{{prefix}}}:*"));
    }
    if lacks(" channel") {
        rules.push(format!("&{{{prefix}:*"));
    }
    Finding::error(CHECK, why, &format!("ACL SETUSER {user} {}", rules.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// What forwarding alone needs, on keys that are not delayline's.
    const FORWARDING: [&str; 2] = ["RPUSH", "XADD"];
    /// What is sent beside the scripts.
    const SENT: [&str; 7] = ["EVAL", "EVALSHA", "HSCAN", "INFO", "PING", "SUBSCRIBE", "UNSUBSCRIBE"];

    fn called(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                called(&path, names);
            } else if path.extension().is_some_and(|extension| extension == "lua") {
                let text = std::fs::read_to_string(&path).unwrap();
                let calls = text.split("call('").skip(1).filter_map(|rest| rest.split('\'').next());
                names.extend(calls.map(String::from));
            }
        }
    }

    #[test]
    fn every_command_that_a_script_calls_is_asked_about() {
        let mut names = BTreeSet::new();
        called(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../lua"), &mut names);
        assert!(names.len() > 10, "{names:?}");
        names.retain(|name| !FORWARDING.contains(&name.as_str()));
        names.extend(SENT.map(String::from));
        let needed: BTreeSet<String> =
            NEEDED.iter().filter_map(|needed| Some(needed.split(' ').next()?.to_string())).collect();
        assert_eq!(needed, names);
    }
}
