use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::{Job, Reason, UnixMs, Verdict};
use thiserror::Error;

use super::{Secret, TargetError, Targets, Url};
use crate::Time;
use crate::job::joined;

const BYTES: &str = "application/octet-stream";

/// How the jobs of a queue are pushed.
#[derive(Clone, Debug)]
pub struct Push {
    /// Where to.
    pub targets: Targets,
    /// What requests are signed with; by none if there is none. While one replaces another both sign.
    pub secrets: Vec<Secret>,
    /// The most bytes of a body.
    pub max_body: usize,
}

/// A `POST` that delivers a job. Whoever sends it follows no redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where to.
    pub url: Url,
    /// The headers, each name once and in lower case.
    pub headers: Vec<(String, String)>,
    /// The job's body.
    pub body: Bytes,
}

/// Why no request can be made of a job: it is to be buried.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsendable {
    /// There is nowhere to send it to.
    #[error("it cannot be pushed: {0}")]
    Target(#[from] TargetError),
    /// Its body is too large.
    #[error(
        "it cannot be pushed: its body of {bytes} bytes is over the limit of {limit}: store it elsewhere and publish \
         where it is"
    )]
    TooLarge {
        /// The body's length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl Push {
    /// The request that delivers the job, given the wall clock.
    ///
    /// `webhook-id` is the job's id with each dot written `%2E`, since a dot ends an id in what is signed. Of the job's
    /// headers, those that HTTP can carry become `delayline-header-<name>`: a token by name, and a value of visible
    /// ASCII, spaces and tabs. The job's trace goes on as `traceparent` and `tracestate`.
    pub fn request(&self, job: &Job, now: UnixMs) -> Result<Request, Unsendable> {
        let (bytes, limit) = (job.body.len(), self.max_body);
        if bytes > limit {
            return Err(Unsendable::TooLarge { bytes, limit });
        }
        let url = self.targets.of(job)?;
        let content_type = job.content_type.as_deref().filter(|value| is_value(value)).unwrap_or(BYTES);
        let id = job.lease.id.as_str().replace('.', "%2E");
        let mut headers = signed_headers(&self.secrets, &id, content_type, &job.body, now);
        headers.extend([
            ("delayline-queue".to_owned(), job.lease.queue.to_string()),
            ("delayline-attempt".to_owned(), job.attempt.to_string()),
            ("delayline-max-attempts".to_owned(), job.max_attempts.to_string()),
            ("delayline-due".to_owned(), Time(job.due).to_string()),
        ]);
        if let Some(trace) = &job.trace {
            headers.push(("traceparent".to_owned(), trace.to_string()));
            if !trace.state.is_empty() && is_value(&trace.state) {
                headers.push(("tracestate".to_owned(), trace.state.clone()));
            }
        }
        headers.extend(own(job));
        Ok(Request { url, headers, body: job.body.clone() })
    }
}

impl From<Unsendable> for Verdict {
    fn from(unsendable: Unsendable) -> Verdict {
        Verdict::Bury { reason: Reason::new(&unsendable.to_string()) }
    }
}

/// The headers of what is sent, by the standard: content type, id, time and signatures.
pub(super) fn signed_headers(
    secrets: &[Secret],
    id: &str,
    content_type: &str,
    body: &[u8],
    now: UnixMs,
) -> Vec<(String, String)> {
    let timestamp = (now.0 / 1000).to_string();
    let signatures = secrets.iter().map(|secret| secret.sign(id, &timestamp, body));
    let signatures = signatures.collect::<Vec<_>>().join(" ");
    let mut headers = vec![
        ("content-type".to_owned(), content_type.to_owned()),
        ("webhook-id".to_owned(), id.to_owned()),
        ("webhook-timestamp".to_owned(), timestamp),
    ];
    if !signatures.is_empty() {
        headers.push(("webhook-signature".to_owned(), signatures));
    }
    headers
}

fn own(job: &Job) -> BTreeMap<String, String> {
    let legal = job.headers.iter().filter(|(name, value)| is_token(name) && is_value(value));
    let named = |name: &String| format!("delayline-header-{}", name.to_ascii_lowercase());
    joined(legal.map(|(name, value)| (named(name), value.clone())))
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn is_value(value: &str) -> bool {
    value.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use delayline_core::Trace;

    use super::*;
    use crate::push::tests::job;
    use crate::push::{OwnUrls, Signed};

    const NOW: UnixMs = UnixMs(1_614_265_330_999);

    fn push(secrets: &[&str]) -> Push {
        let url = "https://a.example/jobs".parse().unwrap();
        Push {
            targets: Targets::new(Some(url), OwnUrls::Off, false).unwrap(),
            secrets: secrets.iter().map(|secret| secret.parse().unwrap()).collect(),
            max_body: 20,
        }
    }

    fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
        let mut found = request.headers.iter().filter(|(found, _)| found == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert_eq!(found.next(), None, "{name} is there twice");
        value
    }

    #[test]
    fn a_request_says_all_of_the_job() {
        let headers = [("Tenant", "acme"), ("tenant", "b"), ("trace", "1")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let request = push(&[]).request(&Job { headers, ..job() }, NOW).unwrap();
        assert_eq!((request.url.as_str(), &request.body[..]), ("https://a.example/jobs", &b"{\"a\":1}"[..]));
        for (name, value) in [
            ("content-type", Some("application/json")),
            ("webhook-id", Some("order:17")),
            ("webhook-timestamp", Some("1614265330")),
            ("webhook-signature", None),
            ("delayline-queue", Some("orders")),
            ("delayline-attempt", Some("2")),
            ("delayline-max-attempts", Some("10")),
            ("delayline-due", Some("2026-11-21T10:00:05.000Z")),
            ("delayline-header-tenant", Some("acme, b")),
            ("delayline-header-trace", Some("1")),
        ] {
            assert_eq!(header(&request, name), value, "{name}");
        }
        assert_eq!(request.headers.len(), 9);
    }

    #[test]
    fn the_trace_goes_on() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = |state: &str| Trace { state: state.to_owned(), ..text.parse().unwrap() };
        for (state, expected) in [("", None), ("a=1,b=2", Some("a=1,b=2")), ("a=1\r\nevil: y", None)] {
            let request = push(&[]).request(&Job { trace: Some(trace(state)), ..job() }, NOW).unwrap();
            assert_eq!(header(&request, "traceparent"), Some(text));
            assert_eq!(header(&request, "tracestate"), expected);
        }
    }

    #[test]
    fn what_http_cannot_carry_is_left_out() {
        let illegal = [
            ("", "x"),
            ("a b", "x"),
            ("a:b", "x"),
            ("a\r\nevil", "x"),
            ("é", "x"),
            ("a", "x\r\nevil: y"),
            ("b", "x\n"),
            ("c", "x\0"),
            ("d", "\u{7f}"),
            ("e", "é"),
        ];
        let headers = illegal.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let content_type = Some("text/plain\r\nevil: y".to_owned());
        let request = push(&[]).request(&Job { headers, content_type, ..job() }, NOW).unwrap();
        assert_eq!(header(&request, "content-type"), Some("application/octet-stream"));
        assert!(request.headers.iter().all(|(name, _)| !name.starts_with("delayline-header-")));
        let unstated = push(&[]).request(&Job { content_type: None, ..job() }, NOW).unwrap();
        assert_eq!(header(&unstated, "content-type"), Some("application/octet-stream"));
    }

    #[test]
    fn each_secret_signs_for_itself() {
        let (new, old) = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
        let mut dotted = job();
        dotted.lease.id = "order.17".parse().unwrap();
        let request = push(&[new, old]).request(&dotted, NOW).unwrap();
        let received = Signed {
            id: header(&request, "webhook-id").unwrap(),
            timestamp: header(&request, "webhook-timestamp").unwrap(),
            signatures: header(&request, "webhook-signature").unwrap(),
            body: &request.body,
        };
        assert_eq!((received.id, received.signatures.split(' ').count()), ("order%2E17", 2));
        for secret in [new, old] {
            assert_eq!(received.verify(&[secret.parse().unwrap()], NOW.0 / 1000, 0), Ok(()));
        }
    }

    #[test]
    fn what_cannot_be_sent_is_buried() {
        let nowhere = Push { targets: Targets::new(None, OwnUrls::Off, false).unwrap(), ..push(&[]) };
        let fits = Job { body: Bytes::from(vec![0; 20]), ..job() };
        let large = Job { body: Bytes::from(vec![0; 21]), ..job() };
        assert!(push(&[]).request(&fits, NOW).is_ok());
        for (push, job, says) in [
            (push(&[]), large, "its body of 21 bytes is over the limit of 20"),
            (nowhere, job(), "no URL is configured for the queue"),
        ] {
            let verdict = Verdict::from(push.request(&job, NOW).unwrap_err());
            assert!(
                matches!(&verdict, Verdict::Bury { reason } if reason.as_str().contains(says)),
                "{verdict:?}"
            );
        }
    }
}
