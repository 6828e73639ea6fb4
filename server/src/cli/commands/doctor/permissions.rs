use delayline_tokio::Prefix;
use delayline_tokio::redis::{Value, cmd};

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
    "RENAME K K",
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

/// Calls each line of `ARGV` with `K` for a key that is gone afterwards; the errors, in the order of the lines.
const PROBE: &str = "
local refused = {}
for i, line in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(line, '%S+') do words[#words + 1] = word == 'K' and KEYS[1] or word end
  local answer = redis.pcall((table.unpack or unpack)(words))
  refused[i] = type(answer) == 'table' and answer.err or ''
end
redis.pcall('UNLINK', KEYS[1])
return refused";

/// Asks the server whether it has the commands that the scripts call, and whether its user may call them.
pub(super) async fn check(wire: &mut Wire, prefix: &Prefix) -> Finding {
    let missing = missing(wire).await;
    if !missing.is_empty() {
        let detail = format!("the server does not know {}: renamed or disabled", missing.join(", "));
        let mend = "take `rename-command` for these out of redis.conf: scripts call commands by their names";
        return Finding::error(CHECK, detail, mend);
    }
    let user: Result<String, String> = wire.ask(cmd("ACL").arg("WHOAMI")).await;
    let Ok(user) = user else { return probe(wire, "USER", prefix).await };
    let mut refused = Vec::new();
    for needed in NEEDED {
        match dry_run(wire, &user, needed, prefix).await {
            Ok(None) => {}
            Ok(Some(why)) => refused.push(why),
            Err(_) => return probe(wire, &user, prefix).await,
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

fn names() -> impl Iterator<Item = &'static str> {
    NEEDED.iter().filter_map(|needed| needed.split(' ').next())
}

/// The commands that the server has not. Without arguments those that it has do nothing, or say that they need some.
async fn missing(wire: &mut Wire) -> Vec<&'static str> {
    let mut missing = Vec::new();
    for name in names() {
        if let Err(why) = wire.ask::<Value>(&cmd(name)).await
            && why.contains("unknown command")
        {
            missing.push(name);
        }
    }
    missing
}

/// Why the server would refuse the command, if it would.
async fn dry_run(
    wire: &mut Wire,
    user: &str,
    needed: &str,
    prefix: &Prefix,
) -> Result<Option<String>, String> {
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

/// Calls from a script what can be called without effect, on a server that does not tell permissions.
async fn probe(wire: &mut Wire, user: &str, prefix: &Prefix) -> Finding {
    let by_hash: Result<(), String> = wire.ask(cmd("EVALSHA").arg(NO_SCRIPT).arg(0)).await;
    if let Some(why) = by_hash.err().filter(|why| wire::is_denied(why)) {
        return denied(&format!("EVALSHA: {why}"), &[], user, prefix);
    }
    let lines: Vec<&str> =
        NEEDED.into_iter().filter(|line| line.contains(" K") && !line.contains("EVAL")).collect();
    let mut script = cmd("EVAL");
    script.arg(PROBE).arg(1).arg(format!("{{{prefix}:0.0}}:doctor:meta")).arg("TIME").arg(&lines);
    let answers: Vec<String> = match wire.ask(&script).await {
        Err(why) if wire::is_denied(&why) => return denied(&format!("EVAL: {why}"), &[], user, prefix),
        answers => answers.unwrap_or_default(),
    };
    let refused = |answer: &String| wire::is_denied(answer) || answer.contains("can't run this command");
    let of_script = ["TIME"].into_iter().chain(lines).zip(&answers).filter(|(_, answer)| refused(answer));
    let called: Vec<&str> = of_script.filter_map(|(line, _)| line.split(' ').next()).collect();
    if !called.is_empty() {
        return denied(&format!("scripts may not call {}", called.join(", ")), &[], user, prefix);
    }
    Finding::warning(
        CHECK,
        "scripts may call what they need, but this server does not tell which keys and channels are allowed",
        "nothing, if the round trip works; ACL DRYRUN of Redis 7 would tell",
    )
}

/// That something is refused, and what would allow it: patterns only for who lacks them, since a server does not add one
/// to `~*`.
fn denied(why: &str, refused: &[String], user: &str, prefix: &Prefix) -> Finding {
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
                // What a lane recalls is a pattern, no command.
                let calls = calls.filter(|call| call.bytes().all(|letter| letter.is_ascii_uppercase()));
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
        let needed: BTreeSet<String> = super::names().map(String::from).collect();
        assert_eq!(needed, names);
    }
}
