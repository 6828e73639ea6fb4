use std::collections::BTreeMap;

use bytesize::ByteSize;
use delayline_tokio::redis::cmd;

use super::finding::Finding;
use super::wire::Wire;

const OLDEST: (u32, u32) = (6, 2);
const FULL: u64 = 95;
const NEARLY_FULL: u64 = 80;

/// What the server says of itself.
struct Info(BTreeMap<String, String>);

/// Checks what the server says of itself.
pub(super) async fn check(wire: &mut Wire) -> Vec<Finding> {
    let info: String = match wire.ask(&cmd("INFO")).await {
        Ok(info) => info,
        Err(why) => {
            let mend = "allow INFO (+info) to see version, role, eviction, persistence and memory";
            return vec![Finding::warning("server", format!("INFO: {why}"), mend)];
        }
    };
    let info = Info::read(&info);
    let save = wire.ask::<Vec<String>>(cmd("CONFIG").arg("GET").arg("save")).await;
    let save = save.map(|save| save.into_iter().nth(1).unwrap_or_default());
    vec![info.version(), info.role(), info.eviction(), info.persistence(save.as_deref()), info.memory()]
}

impl Info {
    fn read(text: &str) -> Info {
        let pairs = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        Info(pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or_default()
    }

    fn version(&self) -> Finding {
        const CHECK: &str = "version";
        let version = self.get("redis_version");
        let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
        let known = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        let shown = match self.get("valkey_version") {
            "" => format!("Redis {version}"),
            valkey => format!("Valkey {valkey}"),
        };
        if self.get("cluster_enabled") == "1" {
            let mend = "Redis Cluster is not driven yet: use a server that is not part of a cluster";
            return Finding::error(CHECK, format!("{shown}, in a cluster"), mend);
        }
        if known < OLDEST {
            return Finding::error(CHECK, shown, "use Redis 6.2 or later, or Valkey");
        }
        Finding::ok(CHECK, shown)
    }

    fn role(&self) -> Finding {
        const CHECK: &str = "role";
        match self.get("role") {
            "master" => Finding::ok(CHECK, format!("primary, {} replicas", self.number("connected_slaves"))),
            "slave" => {
                let detail = format!("replica of {}:{}", self.get("master_host"), self.get("master_port"));
                Finding::error(CHECK, detail, "a replica cannot be written: give the address of the primary")
            }
            role => Finding::warning(CHECK, format!("{role:?}"), "make sure that this is a primary"),
        }
    }

    fn eviction(&self) -> Finding {
        const CHECK: &str = "eviction";
        let policy = self.get("maxmemory_policy");
        let detail = format!("maxmemory-policy {policy}");
        match policy {
            "noeviction" => Finding::ok(CHECK, detail),
            "" => {
                let mend = "make sure that maxmemory-policy is noeviction";
                Finding::warning(CHECK, "maxmemory-policy is not told", mend)
            }
            policy if policy.starts_with("volatile") => {
                let mend = "no job is evicted, but keys that delayline needs may be: CONFIG SET maxmemory-policy noeviction";
                Finding::warning(CHECK, detail, mend)
            }
            _ => {
                let mend = "a full Redis throws jobs away: CONFIG SET maxmemory-policy noeviction";
                Finding::error(CHECK, detail, mend)
            }
        }
    }

    fn persistence(&self, save: Result<&str, &String>) -> Finding {
        const CHECK: &str = "persistence";
        let failed = [("aof_last_write_status", "appendonly file"), ("rdb_last_bgsave_status", "snapshot")];
        if let Some((_, what)) = failed.iter().find(|(name, _)| self.get(name) == "err") {
            let mend = "see the log of Redis: the disk may be full, or its folder not be writable";
            return Finding::error(CHECK, format!("the last write of the {what} failed"), mend);
        }
        match (self.get("aof_enabled"), save) {
            ("1", _) => Finding::ok(CHECK, "appendonly"),
            (_, Ok("")) => {
                Finding::warning(CHECK, "off: a restart loses all jobs", "CONFIG SET appendonly yes")
            }
            (_, Ok(save)) => Finding::ok(
                CHECK,
                format!("snapshots (save {save}): a crash loses what came after the last one"),
            ),
            (_, Err(why)) => {
                let detail = format!("no appendonly, and whether there are snapshots is not told: {why}");
                Finding::warning(CHECK, detail, "make sure that appendonly is yes")
            }
        }
    }

    fn memory(&self) -> Finding {
        const CHECK: &str = "memory";
        let (used, most) = (self.number("used_memory"), self.number("maxmemory"));
        let mend = "a full Redis refuses new jobs: raise maxmemory, or purge dead letters";
        if most == 0 {
            return Finding::ok(CHECK, format!("{} used, no maxmemory", ByteSize(used)));
        }
        let detail = format!("{} of {} used", ByteSize(used), ByteSize(most));
        match used.saturating_mul(100) / most {
            FULL.. => Finding::error(CHECK, detail, mend),
            NEARLY_FULL.. => Finding::warning(CHECK, detail, mend),
            _ => Finding::ok(CHECK, detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: &str = "# Server\r\nredis_version:7.0.15\r\nrole:master\r\nconnected_slaves:2\r\n\
                           maxmemory_policy:noeviction\r\naof_enabled:1\r\nused_memory:1048576\r\nmaxmemory:0\r\n";

    fn shown(finding: &Finding) -> String {
        let line = anstream::adapter::strip_str(&finding.to_string()).to_string();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// What is found if these lines are said beside the healthy ones.
    fn all(other: &str, save: &str) -> String {
        let info = Info::read(&format!("{HEALTHY}{other}"));
        let found = [info.version(), info.role(), info.eviction(), info.persistence(Ok(save)), info.memory()];
        found.iter().map(shown).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn nothing_is_wrong_with_a_healthy_server() {
        let expected = "ok version Redis 7.0.15\nok role primary, 2 replicas\nok eviction maxmemory-policy noeviction\n\
                        ok persistence appendonly\nok memory 1.0 MiB used, no maxmemory";
        assert_eq!(all("", ""), expected);
        assert!(all("valkey_version:8.0.1\nredis_version:7.2.4\n", "").contains("ok version Valkey 8.0.1"));
    }

    #[test]
    fn each_ailment_is_told() {
        for (info, save, says) in [
            ("redis_version:6.0.9\n", "", "error version Redis 6.0.9 use Redis 6.2"),
            ("cluster_enabled:1\n", "", "error version Redis 7.0.15, in a cluster"),
            ("role:slave\nmaster_host:h\nmaster_port:7\n", "", "error role replica of h:7"),
            ("maxmemory_policy:allkeys-lru\n", "", "error eviction maxmemory-policy allkeys-lru"),
            ("maxmemory_policy:volatile-ttl\n", "", "warning eviction"),
            ("aof_enabled:0\n", "", "warning persistence off"),
            ("aof_enabled:0\n", "3600 1", "ok persistence snapshots (save 3600 1)"),
            ("aof_last_write_status:err\n", "", "error persistence the last write of the appendonly file"),
            ("maxmemory:1200000\n", "", "warning memory 1.0 MiB of 1.1 MiB used"),
            ("maxmemory:1048577\n", "", "error memory 1.0 MiB of"),
        ] {
            let found = all(info, save);
            assert!(found.contains(says), "{info}: {found}");
        }
    }
}
