use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use delayline_core::{DELAY_MAX_MS, Job, Reason, Span, UnixMs, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::request::signed_headers;
use super::{Outcome, Push, Request, Unsendable, Url, verdict};
use crate::job::joined;
use crate::payload::Payload;
use crate::{Time, Written};

/// One job of a batch as JSON.
#[derive(Serialize)]
struct Item<'a> {
    id: &'a str,
    attempt: u16,
    max_attempts: u16,
    due: Time,
    headers: BTreeMap<String, String>,
    content_type: Option<&'a str>,
    #[serde(flatten)]
    payload: Payload,
}

/// What a receiver of a batch may answer.
#[derive(Deserialize)]
struct Answer {
    results: Vec<Decided>,
}

#[derive(Deserialize)]
struct Decided {
    id: String,
    verdict: Word,
    delay: Option<Written<Span>>,
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Ack,
    Nack,
    Snooze,
    Bury,
    Release,
}

impl Push {
    /// The request that delivers these jobs of one queue together: a JSON array, an item for each. `webhook-id` is drawn
    /// from all their ids and attempts, so that a batch that is sent again has the same.
    ///
    /// Jobs are not checked for their size: a batch is as large as its jobs.
    pub fn batch(&self, url: &Url, jobs: &[Job], now: UnixMs) -> Result<Request, Unsendable> {
        let items: Vec<Item<'_>> = jobs.iter().map(Item::of).collect();
        let body = serde_json::to_vec(&items).unwrap_or_default();
        let mut headers = signed_headers(&self.secrets, &batch_id(jobs), "application/json", &body, now);
        let queue = jobs.first().map(|job| job.lease.queue.to_string()).unwrap_or_default();
        headers.push(("delayline-queue".to_owned(), queue));
        headers.push(("delayline-batch".to_owned(), jobs.len().to_string()));
        Ok(Request { url: url.clone(), headers, body: body.into() })
    }
}

impl Item<'_> {
    fn of(job: &Job) -> Item<'_> {
        Item {
            id: job.lease.id.as_str(),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            due: Time(job.due),
            headers: joined(job.headers.iter().cloned()),
            content_type: job.content_type.as_deref(),
            payload: Payload::new(job.content_type.as_deref(), &job.body),
        }
    }
}

fn batch_id(jobs: &[Job]) -> String {
    let mut hash = Sha256::new();
    for job in jobs {
        hash.update(format!("{} {} {}\n", job.lease.queue, job.lease.id, job.attempt));
    }
    let mut id = "batch_".to_owned();
    hash.finalize().iter().take(16).for_each(|byte| {
        let _ = write!(id, "{byte:02x}");
    });
    id
}

/// What becomes of the jobs of a batch, in their order, given the wall clock.
///
/// A 2xx may decide of each by itself: `{"results":[{"id":"…","verdict":"nack","delay":"5s","reason":"…"}]}`, with the
/// verdicts `ack`, `nack`, `snooze`, `bury` and `release`. A job that it does not name is acknowledged. Results that cannot
/// be read, or were cut off, are a failed attempt of all. Every other status is what it is for a single job.
pub fn batch_verdicts(jobs: &[Job], outcome: &Outcome<'_>, is_whole: bool, now: UnixMs) -> Vec<Verdict> {
    let Outcome::Answered { status: 200..=299, body, .. } = *outcome else {
        let verdict = verdict(outcome, now);
        return vec![verdict; jobs.len()];
    };
    let failed = |why: String| vec![Verdict::Nack { after_ms: None, reason: Reason::new(&why) }; jobs.len()];
    if !is_whole {
        return failed("the answer to the batch was cut off: answer each job in a line or two".to_owned());
    }
    // An answer that is no object with results decides nothing: a receiver may say "ok".
    let fields = serde_json::from_slice::<BTreeMap<String, &RawValue>>(body);
    if !fields.is_ok_and(|fields| fields.contains_key("results")) {
        return vec![Verdict::Ack; jobs.len()];
    }
    match serde_json::from_slice::<Answer>(body) {
        Ok(answer) => {
            let by_id: HashMap<&str, &Decided> =
                answer.results.iter().map(|decided| (decided.id.as_str(), decided)).collect();
            let of = |job: &Job| {
                by_id.get(job.lease.id.as_str()).map_or(Verdict::Ack, |decided| decided.verdict())
            };
            jobs.iter().map(of).collect()
        }
        Err(why) => failed(format!("the results of the batch cannot be read: {why}")),
    }
}

impl Decided {
    fn verdict(&self) -> Verdict {
        let delay_ms = self.delay.as_ref().map(|delay| delay.0.0.min(DELAY_MAX_MS));
        let reason = Reason::new(self.reason.as_deref().unwrap_or_default());
        match self.verdict {
            Word::Ack => Verdict::Ack,
            Word::Nack => Verdict::Nack { after_ms: delay_ms, reason },
            Word::Snooze => Verdict::Snooze { after_ms: delay_ms.unwrap_or(1_000) },
            Word::Bury => Verdict::Bury { reason },
            Word::Release => Verdict::Release,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;
    use crate::push::tests::job;
    use crate::push::{OwnUrls, Signed, Targets};

    const NOW: UnixMs = UnixMs(1_614_265_330_999);

    fn jobs() -> Vec<Job> {
        let named = |id: &str, body: &'static [u8]| {
            let mut job = Job { body: Bytes::from_static(body), ..job() };
            job.lease.id = id.parse().unwrap();
            job
        };
        vec![
            named("a", b"{\"a\":1}"),
            named("b", b"not json"),
            Job { content_type: None, ..named("c", b"\xff") },
        ]
    }

    fn batch(jobs: &[Job]) -> Request {
        let secrets = vec!["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap()];
        let push = Push { targets: Targets::new(None, OwnUrls::Off, true).unwrap(), secrets, max_body: 20 };
        push.batch(&"https://a.example/jobs".parse().unwrap(), jobs, NOW).unwrap()
    }

    #[test]
    fn a_batch_is_an_array_that_is_signed_as_a_whole() {
        let request = batch(&jobs());
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let item = |id: &str, content_type: Value, encoding: &str, payload: Value| {
            json!({
                "id": id, "attempt": 2, "max_attempts": 10, "due": "2026-11-21T10:00:05.000Z", "headers": {},
                "content_type": content_type, "encoding": encoding, "payload": payload
            })
        };
        let expected = json!([
            item("a", json!("application/json"), "json", json!({ "a": 1 })),
            item("b", json!("application/json"), "text", json!("not json")),
            item("c", Value::Null, "base64", json!("/w==")),
        ]);
        assert_eq!(body, expected);
        let header = |name: &str| request.headers.iter().find(|(found, _)| found == name).unwrap().1.as_str();
        assert_eq!((header("delayline-queue"), header("delayline-batch")), ("orders", "3"));
        assert_eq!(header("content-type"), "application/json");
        let received = Signed {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp"),
            signatures: header("webhook-signature"),
            body: &request.body,
        };
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        assert_eq!(received.verify(&[secret], NOW.0 / 1000, 0), Ok(()));
    }

    #[test]
    fn a_batch_that_is_sent_again_has_the_same_id() {
        let id =
            |jobs: &[Job]| batch(jobs).headers.into_iter().find(|(name, _)| name == "webhook-id").unwrap().1;
        let (first, mut later) = (jobs(), jobs());
        assert_eq!(id(&first), id(&later));
        later[0].attempt += 1;
        assert_ne!(id(&first), id(&later));
        assert!(!id(&first).contains('.'));
    }

    #[test]
    fn each_item_has_its_own_verdict() {
        let nack = |after_ms, reason: &str| Verdict::Nack { after_ms, reason: reason.into() };
        for (status, body, expected) in [
            (200, "", vec![Verdict::Ack; 3]),
            (204, "ok", vec![Verdict::Ack; 3]),
            (200, "[]", vec![Verdict::Ack; 3]),
            (200, r#"{"done":true}"#, vec![Verdict::Ack; 3]),
            (200, r#"{"results":[]}"#, vec![Verdict::Ack; 3]),
            (
                200,
                r#"{"results":[{"id":"b","verdict":"nack","delay":"5s","reason":"busy"},{"id":"c","verdict":"bury"},
                    {"id":"unknown","verdict":"bury"}]}"#,
                vec![Verdict::Ack, nack(Some(5_000), "busy"), Verdict::Bury { reason: "".into() }],
            ),
            (
                200,
                r#"{"results":[{"id":"a","verdict":"snooze","delay":"1m"},{"id":"b","verdict":"release"},
                    {"id":"c","verdict":"snooze"}]}"#,
                vec![
                    Verdict::Snooze { after_ms: 60_000 },
                    Verdict::Release,
                    Verdict::Snooze { after_ms: 1_000 },
                ],
            ),
            (503, r#"{"results":[]}"#, vec![nack(None, "answered 503: {\"results\":[]}"); 3]),
        ] {
            let outcome = Outcome::Answered { status, retry_after: None, body: body.as_bytes() };
            assert_eq!(batch_verdicts(&jobs(), &outcome, true, NOW), expected, "{status} {body}");
        }
        for (body, is_whole, says) in [
            (r#"{"results":[{"id":"a","verdict":"fine"}]}"#, true, "cannot be read: unknown variant"),
            (r#"{"results":[{"id":"a","verdict":"nack","delay":5}]}"#, true, "cannot be read"),
            (r#"{"results":7}"#, true, "cannot be read"),
            (r#"{"results":[{"id":"a""#, false, "was cut off"),
        ] {
            let outcome = Outcome::Answered { status: 200, retry_after: None, body: body.as_bytes() };
            for verdict in batch_verdicts(&jobs(), &outcome, is_whole, NOW) {
                let told = matches!(&verdict, Verdict::Nack { after_ms: None, reason } if reason.as_str().contains(says));
                assert!(told, "{body}: {verdict:?}");
            }
        }
    }
}
