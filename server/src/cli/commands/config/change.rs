use std::str::FromStr;

use bytesize::ByteSize;
use delayline_http::Document;
use delayline_tokio::QueueConfig;
use serde_json::{Map, Value};

use crate::failure::Failure;

const NAMES: [&str; 8] =
    ["attempts", "backoff", "retention", "bury_expired", "max_jobs", "max_bytes", "forward", "push"];

/// One value of a config that is to change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// Its name, after those of the objects that it is in.
    path: Vec<String>,
    /// Null unsets it.
    value: Value,
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, as in attempts=5")?;
        let unset = value == "default" || (value == "none" && name != "backoff");
        let path: Vec<String> = name.split('.').map(str::to_owned).collect();
        let value = match path.len() {
            _ if unset => Value::Null,
            1 => read(name, value)?,
            _ => serde_json::from_str(value).unwrap_or_else(|_| Value::from(value)),
        };
        if path.len() == 1 && !NAMES.contains(&name) {
            return Err(format!("{name:?} is not part of a config: use {}", NAMES.join(", ")));
        }
        Ok(Change { path, value })
    }
}

impl Change {
    /// Adds it to a JSON Merge Patch.
    fn put_into(&self, patch: &mut Map<String, Value>) {
        let Some((name, objects)) = self.path.split_last() else { return };
        let mut patch = patch;
        for object in objects {
            let inner = patch.entry(object.clone()).or_insert(Value::Null);
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            let Value::Object(inner) = inner else { return };
            patch = inner;
        }
        patch.insert(name.clone(), self.value.clone());
    }
}

fn read(name: &str, value: &str) -> Result<Value, String> {
    match name {
        "attempts" | "max_jobs" => value
            .parse::<u64>()
            .map(Value::from)
            .map_err(|_| format!("{name} must be a number, not {value:?}")),
        "max_bytes" => value
            .parse::<ByteSize>()
            .map(|size| Value::from(size.as_u64()))
            .map_err(|_| format!("max_bytes must be a size, as in 64MiB, not {value:?}")),
        "bury_expired" => value
            .parse::<bool>()
            .map(Value::from)
            .map_err(|_| format!("{name} must be true or false, not {value:?}")),
        "push" => serde_json::from_str(value).map_err(|error| {
            format!("push must be JSON, as in '{{\"url\":\"https://…\"}}' ({error}); or set a field of it, as in push.url=https://…")
        }),
        _ => Ok(Value::from(value)),
    }
}

/// The config with these changes.
pub(super) fn apply(config: QueueConfig, changes: &[Change]) -> Result<QueueConfig, Failure> {
    let mut patch = Map::new();
    for change in changes {
        change.put_into(&mut patch);
    }
    let json = serde_json::to_vec(&patch).unwrap_or_default();
    Document::patched(config, &json).map_err(|problem| {
        let detail = problem.detail.replace("the body is not a config: ", "this is not a config: ");
        Failure::Usage(detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_tokio::Backoff;

    fn changed(config: QueueConfig, changes: &[&str]) -> QueueConfig {
        let changes: Vec<Change> = changes.iter().map(|change| change.parse().unwrap()).collect();
        apply(config, &changes).unwrap()
    }

    #[test]
    fn only_what_is_named_changes() {
        let before = QueueConfig { attempts: Some(3), max_jobs: Some(9), ..QueueConfig::default() };
        let after = changed(before, &["backoff=15s 3m", "retention=7d", "max_bytes=1MiB", "max_jobs=none"]);
        let expected = QueueConfig {
            attempts: Some(3),
            backoff: Some(Backoff::Ladder(vec![15_000, 180_000])),
            retention_ms: Some(604_800_000),
            max_bytes: Some(1 << 20),
            ..QueueConfig::default()
        };
        assert_eq!(after, expected);
        let unset = [
            "attempts=default",
            "backoff=default",
            "retention=none",
            "max_bytes=default",
            "bury_expired=none",
        ];
        assert_eq!(changed(after, &unset), QueueConfig::default());
        assert!(changed(QueueConfig::default(), &["backoff=none"]).backoff.is_some());
    }

    #[test]
    fn a_dot_leads_into_an_object() {
        let mut patch = Map::new();
        for change in
            ["push.url=https://a.example/?b=c", "push.rate.limit=5", "push.key=none", "push.name=\"5\""]
        {
            change.parse::<Change>().unwrap().put_into(&mut patch);
        }
        let expected = serde_json::json!({
            "push": { "url": "https://a.example/?b=c", "rate": { "limit": 5 }, "key": null, "name": "5" }
        });
        assert_eq!(Value::Object(patch), expected);
    }

    #[test]
    fn says_what_is_wrong() {
        for (change, says) in [
            ("attempts", "write NAME=VALUE"),
            ("attempt=5", "\"attempt\" is not part of a config: use attempts, backoff"),
            ("attempts=many", "attempts must be a number"),
            ("bury_expired=yes", "must be true or false"),
            ("push=https://a.example", "push.url=https://…"),
            ("max_bytes=big", "as in 64MiB"),
        ] {
            assert!(change.parse::<Change>().unwrap_err().contains(says), "{change}");
        }
        for (change, says) in [
            ("attempts=0", "attempts must be 1 to 999"),
            ("attempts=70000", "this is not a config"),
            ("limits.jobs=5", "unknown field `limits`"),
            ("retention=7", "7 in \"7\" has no unit"),
            ("forward=work", "write list:KEY or stream:KEY"),
        ] {
            let failure = apply(QueueConfig::default(), &[change.parse().unwrap()]).unwrap_err();
            assert!(failure.to_string().contains(says), "{change}: {failure}");
            assert_eq!(failure.exit_code(), 2);
        }
    }
}
