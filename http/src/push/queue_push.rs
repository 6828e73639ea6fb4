use delayline_core::{QueueName, Span};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{OwnUrls, Rate, Targets, Url, UrlError};
use crate::{Object, Written};

const ANY_HTTPS: &str = "*";
const CONCURRENCY: u16 = 50;
const CONCURRENCY_MAX: u16 = 1_000;
const CONNECT_TIMEOUT: Span = Span(5_000);
const TIMEOUT: Span = Span(30_000);
const TIMEOUT_MAX: Span = Span(600_000);
const BATCH_MAX: u16 = 256;
const OWN_URLS_MAX: usize = 32;

/// How the jobs of a queue are pushed: what its config's `push` says, in JSON.
///
/// ```
/// use delayline_http::push::QueuePush;
///
/// let push = QueuePush::read(r#"{"url":"https://a.example/jobs","concurrency":20,"rate":"100/s"}"#)?;
/// assert_eq!((push.concurrency(), push.timeout().0), (20, 30_000));
/// # Ok::<(), delayline_http::push::QueuePushError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct QueuePush {
    /// Where the jobs go that name no URL of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub url: Option<Written<Url>>,
    /// What the URLs that jobs name in their header `push-url` may be: one of these, or below one of them; `*` is any
    /// `https://`. If there is none, jobs may name none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub own_urls: Vec<String>,
    /// The most requests at once to one server, from one process: 1 to 1,000; 50 if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub concurrency: Option<u16>,
    /// The most requests to one server in a length of time, from one process; as many as come if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub rate: Option<Written<Rate>>,
    /// How long a connection may take, name and TLS included; 5 s if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    pub connect_timeout: Option<Written<Span>>,
    /// How long a push may take in all, 100 ms to 10 min; 30 s if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    pub timeout: Option<Written<Span>>,
    /// Sends up to so many jobs, 1 to 256, in one request: a JSON array.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 256))]
    pub batch: Option<u16>,
    /// The queue that is told of each delivery, by a job with the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub callback: Option<QueueName>,
    /// The queue that is told of each death, by a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub failure_callback: Option<QueueName>,
    /// Whether jobs may name such queues for themselves, in their headers `push-callback` and `push-failure-callback`.
    #[serde(skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub own_callbacks: bool,
}

/// Why jobs cannot be pushed as a config says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueuePushError {
    /// It is not JSON, or has other fields.
    #[error("push cannot be read: {0}")]
    Json(String),
    /// There is nowhere to push to.
    #[error("push names no URL: give url, or own_urls if jobs name theirs")]
    Nowhere,
    /// A URL cannot be used.
    #[error("push: {0}")]
    Url(#[from] UrlError),
    /// A number is out of its range.
    #[error("push.{field} must be {allowed}")]
    Range {
        /// The field's name.
        field: &'static str,
        /// What it may be.
        allowed: &'static str,
    },
    /// Batches go to one URL.
    #[error("push.batch sends jobs together to push.url: leave out own_urls")]
    BatchOfOwn,
    /// The answer to a batch is of many jobs.
    #[error(
        "push.batch has one answer for many jobs, so none can be told of it: leave out callback and own_callbacks"
    )]
    BatchCallback,
    /// Callbacks would call back for ever.
    #[error("push.{field} is the queue itself, whose callbacks would call back for ever: name another queue")]
    Itself {
        /// The field's name.
        field: &'static str,
    },
}

impl QueuePush {
    /// Reads and checks the text of a config.
    pub fn read(text: &str) -> Result<QueuePush, QueuePushError> {
        let push: QueuePush =
            Object::read(text.as_bytes()).map_err(|error| QueuePushError::Json(error.to_string()))?;
        push.validate()?;
        Ok(push)
    }

    /// Checks every field.
    pub fn validate(&self) -> Result<(), QueuePushError> {
        let check = |field, is_allowed: bool, allowed| {
            if is_allowed { Ok(()) } else { Err(QueuePushError::Range { field, allowed }) }
        };
        let (timeout, connect) = (self.timeout(), self.connect_timeout());
        check("concurrency", (1..=CONCURRENCY_MAX).contains(&self.concurrency()), "1 to 1000")?;
        check("timeout", (100..=TIMEOUT_MAX.0).contains(&timeout.0), "100ms to 10m")?;
        check("connect_timeout", (10..=TIMEOUT_MAX.0).contains(&connect.0), "10ms to 10m")?;
        check("batch", self.batch.is_none_or(|jobs| (1..=BATCH_MAX).contains(&jobs)), "1 to 256")?;
        check("own_urls", self.own_urls.len() <= OWN_URLS_MAX, "at most 32 URLs")?;
        if self.url.is_none() && self.own_urls.is_empty() {
            return Err(QueuePushError::Nowhere);
        }
        if self.batch.is_some() && !self.own_urls.is_empty() {
            return Err(QueuePushError::BatchOfOwn);
        }
        if self.batch.is_some() && (self.callback.is_some() || self.own_callbacks) {
            return Err(QueuePushError::BatchCallback);
        }
        self.targets().map(|_| ())
    }

    /// Checks what depends on the name of the queue whose config it is.
    pub fn validate_for(&self, queue: &QueueName) -> Result<(), QueuePushError> {
        let callbacks = [("callback", &self.callback), ("failure_callback", &self.failure_callback)];
        match callbacks.into_iter().find(|(_, callback)| callback.as_ref() == Some(queue)) {
            Some((field, _)) => Err(QueuePushError::Itself { field }),
            None => Ok(()),
        }
    }

    /// Where its jobs may go. `http://` has to be named in the config: jobs cannot choose it by `*`.
    pub fn targets(&self) -> Result<Targets, QueuePushError> {
        let url = self.url.as_ref().map(|url| url.0.clone());
        let own = match &self.own_urls[..] {
            [] => OwnUrls::Off,
            urls if urls.iter().any(|url| url == ANY_HTTPS) => OwnUrls::AnyHttps,
            urls => OwnUrls::Within(urls.iter().map(|url| url.parse()).collect::<Result<_, UrlError>>()?),
        };
        Ok(Targets::new(url, own, true)?)
    }

    /// Whether a job may go to another URL than the queue's.
    pub fn allows_own_urls(&self) -> bool {
        !self.own_urls.is_empty()
    }

    /// The most requests at once to one server.
    pub fn concurrency(&self) -> u16 {
        self.concurrency.unwrap_or(CONCURRENCY)
    }

    /// How long a connection may take; never longer than the push.
    pub fn connect_timeout(&self) -> Span {
        self.connect_timeout.as_ref().map_or(CONNECT_TIMEOUT, |span| span.0).min(self.timeout())
    }

    /// How long a push may take.
    pub fn timeout(&self) -> Span {
        self.timeout.as_ref().map_or(TIMEOUT, |span| span.0)
    }

    /// The text of a config.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_as_it_was_written() {
        let full = concat!(
            r#"{"url":"https://a.example/jobs","own_urls":["https://b.example/hooks"],"concurrency":20,"rate":"100/s","#,
            r#""connect_timeout":"1s","timeout":"10s","callback":"done","failure_callback":"failed","own_callbacks":true}"#
        );
        for text in [full, r#"{"url":"http://a.example/"}"#, r#"{"url":"https://a.example/","batch":100}"#] {
            let push = QueuePush::read(text).unwrap();
            assert_eq!(push.to_text(), text);
        }
        let bare = QueuePush::read(r#"{"url":"http://a.example/"}"#).unwrap();
        let shown = (bare.concurrency(), bare.connect_timeout().0, bare.timeout().0, bare.allows_own_urls());
        assert_eq!(shown, (50, 5_000, 30_000, false));
        let short = QueuePush::read(r#"{"url":"http://a.example/","timeout":"1s"}"#).unwrap();
        assert_eq!(short.connect_timeout().0, 1_000);
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, says) in [
            ("", "push cannot be read"),
            ("7", "push cannot be read"),
            ("{}", "push names no URL"),
            (r#"{"url":"a.example"}"#, "is no URL to push to"),
            (r#"{"uri":"https://a.example"}"#, "unknown field `uri`"),
            (r#"{"own_urls":["ftp://a.example"]}"#, "begin with https://"),
            (r#"{"own_urls":["https://a.example/?x"]}"#, "leave out the query"),
            (r#"{"url":"https://a.example/","concurrency":0}"#, "push.concurrency must be 1 to 1000"),
            (r#"{"url":"https://a.example/","concurrency":1001}"#, "push.concurrency must be 1 to 1000"),
            (r#"{"url":"https://a.example/","timeout":"99ms"}"#, "push.timeout must be 100ms to 10m"),
            (r#"{"url":"https://a.example/","timeout":"11m"}"#, "push.timeout must be 100ms to 10m"),
            (r#"{"url":"https://a.example/","connect_timeout":"1ms"}"#, "push.connect_timeout must be"),
            (r#"{"url":"https://a.example/","batch":257}"#, "push.batch must be 1 to 256"),
            (r#"{"url":"https://a.example/","batch":2,"own_urls":["*"]}"#, "leave out own_urls"),
            (r#"{"url":"https://a.example/","batch":2,"callback":"done"}"#, "leave out callback"),
            (r#"{"url":"https://a.example/","rate":"5"}"#, "\"5\" is no rate"),
            (r#"{"url":"https://a.example/","callback":"a b"}"#, "queue name"),
        ] {
            let error = QueuePush::read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let push = QueuePush::read(r#"{"url":"https://a.example/","failure_callback":"q"}"#).unwrap();
        let error = push.validate_for(&"q".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("push.failure_callback is the queue itself"), "{error}");
        assert_eq!(push.validate_for(&"other".parse().unwrap()), Ok(()));
    }
}
