use std::str::FromStr;

use bytesize::ByteSize;
use delayline_http::Document;
use delayline_tokio::QueueConfig;
use serde_json::{Map, Value};

use crate::failure::Failure;

const NAMES: [&str; 7] =
    ["attempts", "backoff", "retention", "bury_expired", "max_jobs", "max_bytes", "forward"];

/// One value of a config that is to change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    name: &'static str,
    /// `None` unsets it.
    value: Option<Value>,
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, as in attempts=5")?;
        let known = || format!("{name:?} is not part of a config: use {}", NAMES.join(", "));
        let name = NAMES.into_iter().find(|known| *known == name).ok_or_else(known)?;
        let unset = value == "default" || (value == "none" && name != "backoff");
        let value = if unset { None } else { Some(read(name, value)?) };
        Ok(Change { name, value })
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
        _ => Ok(Value::from(value)),
    }
}

/// The config with these changes.
pub(super) fn apply(config: QueueConfig, changes: &[Change]) -> Result<QueueConfig, Failure> {
    let mut document = match serde_json::to_value(Document::from(config)) {
        Ok(Value::Object(document)) => document,
        _ => Map::new(),
    };
    for Change { name, value } in changes {
        match value {
            Some(value) => document.insert((*name).to_string(), value.clone()),
            None => document.remove(*name),
        };
    }
    let json = serde_json::to_vec(&document).unwrap_or_default();
    Document::read(&json).map_err(|problem| {
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
    fn says_what_is_wrong() {
        for (change, says) in [
            ("attempts", "write NAME=VALUE"),
            ("attempt=5", "\"attempt\" is not part of a config: use attempts, backoff"),
            ("attempts=many", "attempts must be a number"),
            ("bury_expired=yes", "must be true or false"),
            ("max_bytes=big", "as in 64MiB"),
        ] {
            assert!(change.parse::<Change>().unwrap_err().contains(says), "{change}");
        }
        for (change, says) in [
            ("attempts=0", "attempts must be 1 to 999"),
            ("attempts=70000", "this is not a config"),
            ("retention=7", "7 in \"7\" has no unit"),
            ("forward=work", "write list:KEY or stream:KEY"),
        ] {
            let failure = apply(QueueConfig::default(), &[change.parse().unwrap()]).unwrap_err();
            assert!(failure.to_string().contains(says), "{change}: {failure}");
            assert_eq!(failure.exit_code(), 2);
        }
    }
}
