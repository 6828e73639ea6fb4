use std::time::{Duration, SystemTime};

use delayline_core::{Reason, UnixMs, Verdict};

const LONGEST_WAIT_MS: u64 = 86_400_000;
/// How much of an answer's body is kept in a reason.
pub const BODY_BYTES: usize = 512;

/// What came of a push.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// There was an answer.
    Answered {
        /// Its status code.
        status: u16,
        /// Its header `Retry-After`.
        retry_after: Option<&'a [u8]>,
        /// The beginning of its body; more than [`BODY_BYTES`] of it are not read.
        body: &'a [u8],
    },
    /// There was none within this time.
    TimedOut {
        /// How long was waited for it, in milliseconds.
        after_ms: u64,
    },
    /// There was none, for this reason.
    Failed(&'a str),
}

/// What becomes of a job that was pushed, given the wall clock.
///
/// A 2xx acknowledges it. A 4xx buries it, except for 408, 425 and 429; these and all else are a failed attempt. The next
/// one is made when `Retry-After` says, in seconds or as a date, within 24 hours; if it says nothing, nonsense or a time
/// that is not ahead, by the job's backoff.
pub fn verdict(outcome: &Outcome<'_>, now: UnixMs) -> Verdict {
    match *outcome {
        Outcome::Answered { status: 200..=299, .. } => Verdict::Ack,
        Outcome::Answered { status, retry_after, body } => {
            let reason = Reason::new(&reason(status, body));
            match status {
                408 | 425 | 429 => Verdict::Nack { after_ms: wait_ms(retry_after, now), reason },
                400..=499 => Verdict::Bury { reason },
                _ => Verdict::Nack { after_ms: wait_ms(retry_after, now), reason },
            }
        }
        Outcome::TimedOut { after_ms } => {
            let reason =
                format!("no answer within {after_ms} ms: answer first, then work, or allow more time");
            Verdict::Nack { after_ms: None, reason: Reason::new(&reason) }
        }
        Outcome::Failed(why) => {
            Verdict::Nack { after_ms: None, reason: Reason::new(&format!("the push did not arrive: {why}")) }
        }
    }
}

fn reason(status: u16, body: &[u8]) -> String {
    let what = match status {
        300..=399 => format!("answered {status}, and redirects are not followed: push to where it leads"),
        _ => format!("answered {status}"),
    };
    let body = String::from_utf8_lossy(body.get(..BODY_BYTES).unwrap_or(body));
    match body.trim() {
        "" => what,
        body => format!("{what}: {body}"),
    }
}

fn wait_ms(retry_after: Option<&[u8]>, now: UnixMs) -> Option<u64> {
    let text = str::from_utf8(retry_after?).ok()?.trim();
    let ms = if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000)
    } else {
        let now = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(now.0))?;
        let wait = httpdate::parse_http_date(text).ok()?.duration_since(now).ok()?;
        u64::try_from(wait.as_millis()).ok()?
    };
    (ms > 0).then_some(ms.min(LONGEST_WAIT_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1994-11-06 08:49:37.
    const NOW: UnixMs = UnixMs(784_111_777_000);

    fn of(status: u16, retry_after: Option<&str>, body: &[u8]) -> Verdict {
        verdict(&Outcome::Answered { status, retry_after: retry_after.map(str::as_bytes), body }, NOW)
    }

    fn kind(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Ack => "ack",
            Verdict::Nack { .. } => "nack",
            Verdict::Bury { .. } => "bury",
            Verdict::Snooze { .. } | Verdict::Release => "else",
        }
    }

    #[test]
    fn each_status_has_its_verdict() {
        for (statuses, expected) in [
            (200..=299, "ack"),
            (300..=399, "nack"),
            (400..=407, "bury"),
            (408..=408, "nack"),
            (409..=424, "bury"),
            (425..=425, "nack"),
            (426..=428, "bury"),
            (429..=429, "nack"),
            (430..=499, "bury"),
            (500..=599, "nack"),
            (100..=199, "nack"),
            (600..=999, "nack"),
            (0..=99, "nack"),
        ] {
            for status in statuses {
                assert_eq!(kind(&of(status, None, b"")), expected, "{status}");
            }
        }
        let timeout = verdict(&Outcome::TimedOut { after_ms: 30_000 }, NOW);
        assert!(
            matches!(timeout, Verdict::Nack { after_ms: None, reason } if reason.as_str().contains("30000 ms"))
        );
        let network = verdict(&Outcome::Failed("connection refused"), NOW);
        let says = "the push did not arrive: connection refused";
        assert!(matches!(network, Verdict::Nack { after_ms: None, reason } if reason.as_str() == says));
    }

    #[test]
    fn a_retry_after_is_honoured_if_it_makes_sense() {
        for (retry_after, expected) in [
            ("5", Some(5_000)),
            (" 120 ", Some(120_000)),
            ("86400", Some(86_400_000)),
            ("86401", Some(86_400_000)),
            ("99999999999999999999999999", Some(86_400_000)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
            ("Sunday, 06-Nov-94 08:49:47 GMT", Some(10_000)),
            ("Sun Nov  6 08:49:47 1994", Some(10_000)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", Some(86_400_000)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:36 GMT", None),
            ("0", None),
            ("", None),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("5s", None),
            ("soon", None),
            ("Mon, 31 Feb 1994 08:49:47 GMT", None),
        ] {
            for status in [301, 408, 425, 429, 500, 503] {
                let Verdict::Nack { after_ms, .. } = of(status, Some(retry_after), b"") else {
                    panic!("{status}")
                };
                assert_eq!(after_ms, expected, "{status} {retry_after}");
            }
        }
        assert_eq!(kind(&of(404, Some("5"), b"")), "bury");
        let bytes = Outcome::Answered { status: 503, retry_after: Some(b"\xff"), body: b"" };
        assert!(matches!(verdict(&bytes, NOW), Verdict::Nack { after_ms: None, .. }));
        let late =
            Outcome::Answered { status: 503, retry_after: Some(b"Sun, 06 Nov 1994 08:49:47 GMT"), body: b"" };
        assert!(matches!(verdict(&late, UnixMs(u64::MAX)), Verdict::Nack { after_ms: None, .. }));
    }

    #[test]
    fn a_reason_has_the_status_and_the_beginning_of_the_body() {
        for (status, body, expected) in [
            (410, &b"no such hook\n"[..], "answered 410: no such hook"),
            (500, b"", "answered 500"),
            (500, b" \n", "answered 500"),
            (400, b"caf\xe9", "answered 400: caf\u{fffd}"),
            (302, b"", "answered 302, and redirects are not followed: push to where it leads"),
        ] {
            let (Verdict::Nack { reason, .. } | Verdict::Bury { reason }) = of(status, None, body) else {
                panic!("{status}")
            };
            assert_eq!(reason.as_str(), expected);
        }
        let long = "é".repeat(2_000);
        let Verdict::Bury { reason } = of(400, None, long.as_bytes()) else { panic!("not buried") };
        assert_eq!(reason.as_str(), format!("answered 400: {}", "é".repeat(256)));
        let Verdict::Bury { reason } = of(400, None, &[0xff; 600]) else { panic!("not buried") };
        assert_eq!(reason.as_str(), format!("answered 400: {}", "\u{fffd}".repeat(336)));
    }
}
