use delayline_core::{Backoff, Forward, QueueConfig, QueueName, Span};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::push::QueuePush;
use crate::{Object, Problem, Written};

/// A queue's config as JSON: what is left out has its default.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConfigFields))]
#[serde(deny_unknown_fields, default)]
pub struct Document {
    /// The most attempts of a job; 10 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 999))]
    attempts: Option<u16>,
    /// The delay before another attempt; `exponential 1s..1h jitter 10%` unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::BackoffText>))]
    backoff: Option<Written<Backoff>>,
    /// How long dead letters are kept; for ever unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    retention: Option<Written<Span>>,
    /// Whether jobs that expire become dead letters.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    bury_expired: bool,
    /// The most jobs of the queue, dead letters included; 2,000,000 unless said, 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_jobs: Option<u64>,
    /// The most bytes of its jobs; 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
    /// Where due jobs are moved instead of being delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::ForwardText>))]
    forward: Option<Written<Forward>>,
    /// How its jobs are pushed to a URL; they are not unless said.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "Object::within_option")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<QueuePush>))]
    push: Option<Box<QueuePush>>,
    /// How jobs are pushed in words of another version: shown, but not written back.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    unknown_push: Option<String>,
}

impl Document {
    /// The config that JSON Merge Patch (RFC 7396) makes of another: what is named changes, what is null has its default
    /// again.
    pub fn patched(config: QueueConfig, patch: &[u8]) -> Result<QueueConfig, Problem> {
        let refused = |error: serde_json::Error| {
            Problem::bad("bad_config", format!("the body is not a config: {error}"))
        };
        let patch: Map<String, Value> = serde_json::from_slice(patch).map_err(refused)?;
        let push = config.push.clone();
        let document = Document::from(config);
        // What another version wrote of pushes stays as it is, unless it is named.
        let unread = push.filter(|_| document.unknown_push.is_some() && !patch.contains_key("push"));
        let mut document =
            serde_json::to_value(Document { unknown_push: None, ..document }).map_err(refused)?;
        merge(&mut document, Value::Object(patch));
        let config = Document::read(&serde_json::to_vec(&document).map_err(refused)?)?;
        match unread {
            Some(_) if config.forward.is_some() => Err(forwarded_and_pushed()),
            Some(push) => Ok(QueueConfig { push: Some(push), ..config }),
            None => Ok(config),
        }
    }

    /// Every value that a config has, by name, and what it is where the config does not say: null for none.
    pub fn defaults() -> Map<String, Value> {
        let defaults = [
            ("attempts", DEFAULT_ATTEMPTS.into()),
            ("backoff", Backoff::default().to_string().into()),
            ("retention", Value::Null),
            ("bury_expired", false.into()),
            ("max_jobs", Value::Null),
            ("max_bytes", Value::Null),
            ("forward", Value::Null),
            ("push", Value::Null),
        ];
        defaults.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Reads a whole config.
    pub fn read(json: &[u8]) -> Result<QueueConfig, Problem> {
        let document: Document = Object::read(json)
            .map_err(|error| Problem::bad("bad_config", format!("the body is not a config: {error}")))?;
        if document.attempts.is_some_and(|attempts| !(1..=999).contains(&attempts)) {
            return Err(Problem::bad("bad_config", "attempts must be 1 to 999"));
        }
        if let Some(push) = &document.push {
            push.validate().map_err(|error| Problem::bad("bad_config", error.to_string()))?;
            if document.forward.is_some() {
                return Err(forwarded_and_pushed());
            }
        }
        Ok(document.into())
    }

    /// Checks what depends on the name of the queue whose config it is.
    pub fn validate_for(config: &QueueConfig, queue: &QueueName) -> Result<(), Problem> {
        let push = config.push.as_deref().and_then(|text| QueuePush::read(text).ok());
        let checked = push.map_or(Ok(()), |push| push.validate_for(queue));
        checked.map_err(|error| Problem::bad("bad_config", error.to_string()))
    }
}

fn forwarded_and_pushed() -> Problem {
    Problem::bad("bad_config", "jobs are forwarded or pushed, not both: leave out forward or push")
}

/// How many attempts a job has whose publisher and queue say nothing.
const DEFAULT_ATTEMPTS: u16 = 10;

fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, value) in patch {
        match value {
            Value::Null => drop(target.remove(&name)),
            value => merge(target.entry(name).or_insert(Value::Null), value),
        }
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
            push: document.push.map(|push| push.to_text()),
        }
    }
}

impl From<QueueConfig> for Document {
    fn from(config: QueueConfig) -> Document {
        let read = config.push.as_deref().map(QueuePush::read);
        let unknown = read.as_ref().is_some_and(Result::is_err);
        Document {
            attempts: config.attempts,
            backoff: config.backoff.map(Written),
            retention: config.retention_ms.map(|ms| Written(Span(ms))),
            bury_expired: config.bury_expired,
            max_jobs: config.max_jobs,
            max_bytes: config.max_bytes,
            forward: config.forward.map(Written),
            push: read.and_then(Result::ok).map(Box::new),
            unknown_push: config.push.filter(|_| unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
    fn how_jobs_are_pushed_is_an_object_within() {
        let json = r#"{"bury_expired":false,"push":{"url":"https://a.example/jobs","concurrency":9}}"#;
        let config = Document::read(json.as_bytes()).unwrap();
        assert_eq!(config.push.as_deref(), Some(r#"{"url":"https://a.example/jobs","concurrency":9}"#));
        assert_eq!(serde_json::to_string(&Document::from(config)).unwrap(), json);
        let newer = QueueConfig { push: Some(r#"{"to":"x"}"#.to_owned()), ..QueueConfig::default() };
        let shown = serde_json::to_string(&Document::from(newer)).unwrap();
        assert_eq!(shown, r#"{"bury_expired":false,"unknown_push":"{\"to\":\"x\"}"}"#);
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let before = Document::read(br#"{"attempts":5,"backoff":"15s 3m","bury_expired":true}"#).unwrap();
        let after = Document::patched(before.clone(), br#"{"attempts":null,"retention":"7d"}"#).unwrap();
        let expected = QueueConfig { attempts: None, retention_ms: Some(604_800_000), ..before.clone() };
        assert_eq!(after, expected);
        assert_eq!(Document::patched(before.clone(), b"{}").unwrap(), before);
        for (patch, says) in
            [("[]", "not a config"), (r#"{"attempt":1}"#, "unknown field"), (r#"{"attempts":0}"#, "1 to 999")]
        {
            let problem = Document::patched(before.clone(), patch.as_bytes()).unwrap_err();
            assert!(problem.code == "bad_config" && problem.detail.contains(says), "{patch}: {problem:?}");
        }
    }

    #[test]
    fn what_another_version_wrote_of_pushes_outlasts_a_patch() {
        let newer = QueueConfig { push: Some(r#"{"to":"x"}"#.to_owned()), ..QueueConfig::default() };
        let after = Document::patched(newer.clone(), br#"{"attempts":3}"#).unwrap();
        assert_eq!(after, QueueConfig { attempts: Some(3), ..newer.clone() });
        assert_eq!(Document::patched(newer.clone(), br#"{"push":null}"#).unwrap().push, None);
        let both = Document::patched(newer, br#"{"forward":"list:work"}"#).unwrap_err();
        assert!(both.detail.contains("not both"), "{}", both.detail);
    }

    #[test]
    fn a_patch_leads_into_how_jobs_are_pushed() {
        let before = Document::read(br#"{"push":{"url":"https://a.example/","concurrency":9}}"#).unwrap();
        let after = Document::patched(before, br#"{"push":{"concurrency":null,"timeout":"5s"}}"#).unwrap();
        assert_eq!(after.push.as_deref(), Some(r#"{"url":"https://a.example/","timeout":"5s"}"#));
    }

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn merging_is_that_of_the_rfc() {
        for (target, patch, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            let [mut target, patch, result] =
                [target, patch, result].map(|json| serde_json::from_str::<Value>(json).unwrap());
            merge(&mut target, patch);
            assert_eq!(target, result);
        }
    }

    #[test]
    fn every_value_has_a_default() {
        let json = r#"{"attempts":5,"backoff":"15s 3m","retention":"7d","bury_expired":true,"max_jobs":9,"max_bytes":0,"push":{"url":"https://a.example/"}}"#;
        let mut full =
            serde_json::to_value(Document::from(Document::read(json.as_bytes()).unwrap())).unwrap();
        let names = full.as_object_mut().unwrap();
        names.insert("forward".to_owned(), Value::Null);
        let names: BTreeSet<&String> = names.keys().collect();
        let defaults = Document::defaults();
        assert_eq!(defaults.keys().collect::<BTreeSet<_>>(), names);
    }

    #[test]
    fn says_what_is_wrong_with_a_config() {
        for (json, detail) in [
            (r#"{"attempt":5}"#, "unknown field `attempt`, expected one of `attempts`"),
            (r#"{"attempts":0}"#, "attempts must be 1 to 999"),
            (r#"{"backoff":"15s 3"}"#, "3 in \"3\" has no unit"),
            (r#"{"retention":7}"#, "expected a string"),
            (r#"{"forward":"work"}"#, "write list:KEY or stream:KEY"),
            (r#"{"push":{}}"#, "push names no URL"),
            (
                r#"{"push":{"url":"https://a.example/"},"forward":"list:work"}"#,
                "forwarded or pushed, not both",
            ),
            ("", "the body is not a config"),
        ] {
            let problem = Document::read(json.as_bytes()).unwrap_err();
            assert!(problem.detail.contains(detail), "{json}: {}", problem.detail);
        }
    }
}
