use delayline_core::{Backoff, Forward, QueueConfig, Span};
use serde::{Deserialize, Serialize};

use crate::{Problem, Written};

/// A queue's config as JSON: what is left out has its default.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Written<Backoff>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention: Option<Written<Span>>,
    bury_expired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_jobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward: Option<Written<Forward>>,
}

impl Document {
    /// Reads a whole config.
    pub fn read(json: &[u8]) -> Result<QueueConfig, Problem> {
        let document: Document = serde_json::from_slice(json)
            .map_err(|error| Problem::bad("bad_config", format!("the body is not a config: {error}")))?;
        if document.attempts.is_some_and(|attempts| !(1..=999).contains(&attempts)) {
            return Err(Problem::bad("bad_config", "attempts must be 1 to 999"));
        }
        Ok(document.into())
    }
}

impl From<Document> for QueueConfig {
    fn from(document: Document) -> QueueConfig {
        QueueConfig {
            attempts: document.attempts,
            backoff: document.backoff.map(|backoff| backoff.0),
            retention_ms: document.retention.map(|retention| retention.0.0),
            bury_expired: document.bury_expired,
            max_jobs: document.max_jobs,
            max_bytes: document.max_bytes,
            forward: document.forward.map(|forward| forward.0),
        }
    }
}

impl From<QueueConfig> for Document {
    fn from(config: QueueConfig) -> Document {
        Document {
            attempts: config.attempts,
            backoff: config.backoff.map(Written),
            retention: config.retention_ms.map(|ms| Written(Span(ms))),
            bury_expired: config.bury_expired,
            max_jobs: config.max_jobs,
            max_bytes: config.max_bytes,
            forward: config.forward.map(Written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_reads_back_as_written() {
        let json = r#"{"attempts":5,"backoff":"15s 3m","retention":"7d","bury_expired":true,"max_jobs":9,"max_bytes":0,"forward":"list:work"}"#;
        let config = Document::read(json.as_bytes()).unwrap();
        assert_eq!(
            (config.retention_ms, config.forward.clone()),
            (Some(604_800_000), Some(Forward::List("work".into())))
        );
        assert_eq!(serde_json::to_string(&Document::from(config)).unwrap(), json);
        assert_eq!(Document::read(b"{}").unwrap(), QueueConfig::default());
    }

    #[test]
    fn says_what_is_wrong_with_a_config() {
        for (json, detail) in [
            (r#"{"attempt":5}"#, "unknown field `attempt`, expected one of `attempts`"),
            (r#"{"attempts":0}"#, "attempts must be 1 to 999"),
            (r#"{"backoff":"15s 3"}"#, "3 in \"3\" has no unit"),
            (r#"{"retention":7}"#, "expected a string"),
            (r#"{"forward":"work"}"#, "write list:KEY or stream:KEY"),
            ("", "the body is not a config"),
        ] {
            let problem = Document::read(json.as_bytes()).unwrap_err();
            assert!(problem.detail.contains(detail), "{json}: {}", problem.detail);
        }
    }
}
