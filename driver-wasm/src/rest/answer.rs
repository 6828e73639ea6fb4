use delayline_core::wire::{Dialect, refusal};
use delayline_core::{Kind, Refusal, Reply};
use serde::Deserialize;

use super::value::Item;

/// What came back for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Why nothing came back, or not all of it: the request may have been carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It took too long.
    TimedOut,
    /// It broke off, or was not sent.
    Failed(String),
}

/// What became of a round trip, in the engine's terms.
#[derive(Clone, Debug, PartialEq)]
pub enum Landed {
    /// For [`handle_replies`](delayline_core::Engine::handle_replies).
    Replies(Vec<Reply>),
    /// For [`handle_loss`](delayline_core::Engine::handle_loss): nobody knows whether it was carried out.
    Lost {
        /// Why, for people.
        why: String,
    },
}

/// An error that is about the request as a whole.
#[derive(Deserialize)]
struct Whole {
    error: String,
}

/// What an answer means for a transmit of these kinds.
///
/// Only what says that nothing was carried out is a refusal: 400, which answers a request that cannot be read, a quota and
/// a size; 401 and 403; 404 and 405, where there is no such endpoint; 413; 429. All else that is no list of results is
/// lost: other statuses (a proxy may have passed the request on), HTML, a body that was cut. Where results are missing
/// from the end, those commands are.
pub fn land(dialect: impl Dialect, kinds: &[Kind], answer: Result<Answer, Cut>) -> Landed {
    let answer = match answer {
        Ok(answer) => answer,
        Err(Cut::TimedOut) => return Landed::Lost { why: "no answer in time".to_owned() },
        Err(Cut::Failed(why)) => return Landed::Lost { why },
    };
    match answer.status {
        200 => results(dialect, kinds, &answer.body),
        status => match refused(status, &answer.body) {
            Some(why) => Landed::Replies(kinds.iter().map(|_| Reply::Refused(why)).collect()),
            None => Landed::Lost { why: format!("HTTP status {status}{}", shown(&answer.body)) },
        },
    }
}

fn results(dialect: impl Dialect, kinds: &[Kind], body: &[u8]) -> Landed {
    match serde_json::from_slice::<Vec<Item>>(body) {
        Ok(items) => {
            let decoded = kinds.iter().zip(items).map(|(kind, item)| dialect.decode(*kind, item.0));
            Landed::Replies(decoded.collect())
        }
        Err(error) => {
            Landed::Lost { why: format!("an answer that is no list of results ({error}){}", shown(body)) }
        }
    }
}

fn refused(status: u16, body: &[u8]) -> Option<Refusal> {
    let said = serde_json::from_slice::<Whole>(body).ok().and_then(|whole| refusal(&whole.error));
    match status {
        400 => Some(said.unwrap_or(Refusal::Rejected)),
        401 | 403 => Some(Refusal::Denied),
        404 | 405 => Some(Refusal::Rejected),
        413 => Some(Refusal::TooLarge),
        429 => Some(said.unwrap_or(Refusal::Throttled)),
        _ => None,
    }
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..200).unwrap_or(body)).trim().to_owned();
    if text.is_empty() { text } else { format!(": {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::wire::All;
    use delayline_core::{SettleOutcome, UnixMicros};

    const KINDS: [Kind; 2] = [Kind::Settle, Kind::Peek];

    fn landed(status: u16, body: &str) -> Landed {
        land(All, &KINDS, Ok(Answer { status, body: body.into() }))
    }

    fn refused(why: Refusal) -> Landed {
        Landed::Replies(vec![Reply::Refused(why), Reply::Refused(why)])
    }

    #[test]
    fn each_result_is_a_reply() {
        let settled = || Reply::Settled { time: Some(UnixMicros(7)), outcomes: vec![SettleOutcome::Done] };
        let peeked = Reply::Peeked { time: UnixMicros(8), holder: None, agenda: vec![], firsts: vec![] };
        let both = r#"[{"result":["b2s=","Nw==","bw=="]},{"result":["b2s=","OA==","","MA==",[],[],[]]}]"#;
        assert_eq!(landed(200, both), Landed::Replies(vec![settled(), peeked]));
        let half = r#"[{"result":["b2s=","Nw==","bw=="]},{"error":"NOSCRIPT No matching script. Please use EVAL."}]"#;
        assert_eq!(landed(200, half), Landed::Replies(vec![settled(), Reply::Refused(Refusal::NoScript)]));
        let failed = r#"[{"result":["b2s=","Nw==","bw=="]},{"error":"ERR user_script:1: oh"}]"#;
        assert_eq!(
            landed(200, failed),
            Landed::Replies(vec![settled(), Reply::Broken("ERR user_script:1: oh".into())])
        );
        assert_eq!(landed(200, r#"[{"result":["b2s=","Nw==","bw=="]}]"#), Landed::Replies(vec![settled()]));
    }

    #[test]
    fn what_was_certainly_not_carried_out_is_refused() {
        for (status, body, why) in [
            (401, r#"{"error":"WRONGPASS invalid or missing auth token"}"#, Refusal::Denied),
            (403, "", Refusal::Denied),
            (
                400,
                r#"{"error":"ERR max daily request limit exceeded. Limit: 10000, Usage: 10000."}"#,
                Refusal::Quota,
            ),
            (400, r#"{"error":"ERR max request size exceeded. Limit: 10485760 bytes"}"#, Refusal::TooLarge),
            (400, r#"{"error":"ERR failed to parse pipeline request"}"#, Refusal::Rejected),
            (404, "<html>no such page</html>", Refusal::Rejected),
            (405, "", Refusal::Rejected),
            (413, "<html>", Refusal::TooLarge),
            (429, "", Refusal::Throttled),
            (429, r#"{"error":"ERR max requests limit exceeded"}"#, Refusal::Quota),
        ] {
            assert_eq!(landed(status, body), refused(why), "{status} {body}");
        }
    }

    #[test]
    fn all_else_may_have_been_carried_out() {
        for (status, body) in [
            (200, ""),
            (200, "<html>Welcome to the hotel</html>"),
            (200, r#"[{"result":["b2s=","Nw==","bw=="]},{"resu"#),
            (200, r#"{"error":"ERR one for all"}"#),
            (200, "\u{0}"),
            (204, ""),
            (302, ""),
            (408, ""),
            (500, r#"{"error":"internal"}"#),
            (502, "<html>"),
            (503, ""),
            (504, ""),
            (520, ""),
        ] {
            assert!(matches!(landed(status, body), Landed::Lost { .. }), "{status} {body}");
        }
        assert!(matches!(land(All, &KINDS, Err(Cut::TimedOut)), Landed::Lost { .. }));
        let cut = land(All, &KINDS, Err(Cut::Failed("Network connection lost.".into())));
        assert_eq!(cut, Landed::Lost { why: "Network connection lost.".into() });
        let Landed::Lost { why } = landed(502, " <h1>Bad gateway</h1> ") else { panic!("lost") };
        assert_eq!(why, "HTTP status 502: <h1>Bad gateway</h1>");
    }
}
