//! How deliveries end: what is said of one or many leases, and what that is answered.

use delayline_core::{Lease, Reason, SettleOutcome, Span, UnixMs, Verdict, VerdictKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Object, Options, Problem, Response, Time, Written, items, outcome};

/// A verdict on one lease, but for its body.
#[derive(Debug)]
pub struct Settle {
    kind: VerdictKind,
    in_query: Terms,
}

/// `POST leases/settle`: verdicts on many leases, each for itself.
#[derive(Debug)]
pub struct SettleMany(Vec<Result<(), Problem>>);

/// What a verdict says beside its name.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = VerdictTerms))]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    /// How long until the job is due again; of a nack and of a snooze.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    delay: Option<Written<Span>>,
    /// Why the attempt failed, cut to 1 KiB; of a nack and of a bury.
    reason: Option<String>,
}

/// A verdict on a lease.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Settlement))]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    /// As the job was delivered with it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::LeaseText))]
    lease: Written<Lease>,
    /// How the delivery ends.
    verdict: VerdictName,
    /// How long until the job is due again; of a nack, and always of a snooze.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    delay: Option<Written<Span>>,
    /// Why the attempt failed, cut to 1 KiB; of a nack and of a bury.
    reason: Option<String>,
}

/// How a delivery ends.
#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
enum VerdictName {
    Ack,
    Nack,
    Snooze,
    Release,
    Bury,
}

/// A delivery that has ended.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Settled {
    /// `repeat`: this verdict came before; `dead`: the job is a dead letter now; `expired`: the job is gone by its TTL.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::SettleStatus))]
    status: &'static str,
}

/// A lease that lasts longer.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Extended {
    /// Always `ok`.
    status: &'static str,
    /// When the lease ends now.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Moment))]
    lease_ends: Time,
}

/// What became of each verdict, in its place.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SettleResults))]
pub(crate) struct Results {
    /// An outcome for each item, in their order.
    results: Vec<Outcome>,
}

/// What became of one verdict.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SettleOutcome))]
struct Outcome {
    /// As of a single verdict; `stale` and `gone` as the codes of those names; `error` for every other problem.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::SettleManyStatus))]
    status: &'static str,
    /// The code of the problem, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Code>))]
    code: Option<&'static str>,
    /// What happened, to what, and what to do, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Settle {
    /// Reads the options that such a verdict has.
    pub fn read(kind: VerdictKind, mut options: Options) -> Result<Settle, Problem> {
        let mut in_query = Terms::default();
        if matches!(kind, VerdictKind::Nack | VerdictKind::Snooze) {
            in_query.delay = options.read("delay")?.map(Written);
        }
        if matches!(kind, VerdictKind::Nack | VerdictKind::Bury) {
            in_query.reason = options.read("reason")?;
        }
        options.finish()?;
        Ok(Settle { kind, in_query })
    }

    /// Whether a body says what the query may say too.
    pub fn has_body(&self) -> bool {
        matches!(self.kind, VerdictKind::Nack | VerdictKind::Snooze | VerdictKind::Bury)
    }

    /// The verdict, given the body, which may be empty.
    pub fn with_body(self, body: &[u8]) -> Result<Verdict, Problem> {
        let Settle { kind, in_query } = self;
        if body.is_empty() {
            return verdict(kind, in_query);
        }
        if in_query != Terms::default() {
            let detail = "options are in the query and in the body: give them in one of both";
            return Err(Problem::bad("bad_option", detail));
        }
        let terms = Object::read(body).map_err(|error| {
            let wanted = match kind {
                VerdictKind::Nack => "{\"reason\": \"…\", \"delay\": \"5s\"}, or less of it",
                VerdictKind::Snooze => "{\"delay\": \"5s\"}",
                _ => "{\"reason\": \"…\"}",
            };
            Problem::bad("bad_json", format!("the body cannot be read: {error}: write {wanted}"))
        })?;
        verdict(kind, terms)
    }
}

impl SettleMany {
    /// Reads an array: the settlements are those items that are some, and whose leases `may` be settled, in their order.
    pub fn read(
        body: &[u8],
        may: impl Fn(&Lease) -> Result<(), Problem>,
    ) -> Result<(SettleMany, Vec<(Lease, Verdict)>), Problem> {
        let items = items(body, |error| {
            let detail = format!("the body is not an array of {{\"lease\", \"verdict\"}}: {error}");
            Problem::bad("bad_json", detail)
        })?;
        let (mut read, mut settlements) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            read.push(read_item(item).and_then(|settlement| {
                may(&settlement.0)?;
                settlements.push(settlement);
                Ok(())
            }));
        }
        Ok((SettleMany(read), settlements))
    }

    /// The answer, given what became of each settlement, in their order.
    pub fn answer(self, outcomes: impl IntoIterator<Item = Result<SettleOutcome, Problem>>) -> Response {
        let mut outcomes = outcomes.into_iter();
        let unanswered =
            || Err(Problem::unknown("it is not known what became of the job: repeat the verdict"));
        let results = self.0.into_iter().map(|read| {
            let settled = read.and_then(|()| outcomes.next().unwrap_or_else(unanswered));
            Outcome::of(settled.and_then(outcome::settled))
        });
        Response::json(200, &Results { results: results.collect() })
    }
}

/// The answer to a verdict on one lease.
pub fn settled(outcome: SettleOutcome) -> Result<Response, Problem> {
    outcome::settled(outcome).map(|status| Response::json(200, &Settled { status }))
}

/// The answer to a lease that was extended until `lease_ends`.
pub fn extended(lease_ends: UnixMs) -> Response {
    Response::json(200, &Extended { status: "ok", lease_ends: Time(lease_ends) })
}

impl Outcome {
    fn of(settled: Result<&'static str, Problem>) -> Outcome {
        match settled {
            Ok(status) => Outcome { status, code: None, detail: None },
            Err(problem) => {
                let status = if matches!(problem.code, "stale" | "gone") { problem.code } else { "error" };
                Outcome { status, code: Some(problem.code), detail: Some(problem.detail) }
            }
        }
    }
}

fn read_item(item: &RawValue) -> Result<(Lease, Verdict), Problem> {
    let item: Item = Object::read(item.get().as_bytes())
        .map_err(|error| Problem::bad("bad_item", format!("this settles nothing: {error}")))?;
    let verdict = verdict(item.verdict.into(), Terms { delay: item.delay, reason: item.reason })?;
    Ok((item.lease.0, verdict))
}

fn verdict(kind: VerdictKind, Terms { delay, reason }: Terms) -> Result<Verdict, Problem> {
    use VerdictKind::{Ack, Bury, Nack, Release, Snooze};
    if delay.is_some() && !matches!(kind, Nack | Snooze) {
        return Err(Problem::bad("bad_item", "only nack and snooze have a delay: leave it out"));
    }
    if reason.is_some() && !matches!(kind, Nack | Bury) {
        return Err(Problem::bad("bad_item", "only nack and bury have a reason: leave it out"));
    }
    let after_ms = delay.map(|delay| delay.0.0);
    let reason = Reason::new(reason.as_deref().unwrap_or_default());
    Ok(match kind {
        Ack => Verdict::Ack,
        Nack => Verdict::Nack { after_ms, reason },
        Snooze => {
            let after_ms =
                after_ms.ok_or_else(|| Problem::bad("bad_option", "a snooze needs a delay: add delay=5s"))?;
            Verdict::Snooze { after_ms }
        }
        Release => Verdict::Release,
        Bury => Verdict::Bury { reason },
    })
}

impl From<VerdictName> for VerdictKind {
    fn from(name: VerdictName) -> VerdictKind {
        match name {
            VerdictName::Ack => VerdictKind::Ack,
            VerdictName::Nack => VerdictKind::Nack,
            VerdictName::Snooze => VerdictKind::Snooze,
            VerdictName::Release => VerdictKind::Release,
            VerdictName::Bury => VerdictKind::Bury,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: VerdictKind, query: &str, body: &str) -> Result<Verdict, Problem> {
        Settle::read(kind, Options::new(query, &std::iter::empty().collect())?)?.with_body(body.as_bytes())
    }

    #[test]
    fn a_verdict_says_the_same_in_its_query_and_in_its_body() {
        let nack = Verdict::Nack { after_ms: Some(5_000), reason: "no\nanswer".into() };
        let bury = Verdict::Bury { reason: "no\nanswer".into() };
        for (kind, query, body, verdict) in [
            (
                VerdictKind::Nack,
                "delay=5s&reason=no%0Aanswer",
                r#"{"delay":"5s","reason":"no\nanswer"}"#,
                nack,
            ),
            (VerdictKind::Nack, "", "{}", Verdict::Nack { after_ms: None, reason: Reason::default() }),
            (VerdictKind::Snooze, "delay=5s", r#"{"delay":"5s"}"#, Verdict::Snooze { after_ms: 5_000 }),
            (VerdictKind::Bury, "reason=no%0Aanswer", r#"{"reason":"no\nanswer"}"#, bury),
        ] {
            assert_eq!(told(kind, query, "").unwrap(), verdict, "{query}");
            assert_eq!(told(kind, "", body).unwrap(), verdict, "{body}");
            if !query.is_empty() {
                let problem = told(kind, query, body).unwrap_err();
                assert_eq!(problem.code, "bad_option");
                assert!(problem.detail.contains("give them in one of both"), "{}", problem.detail);
            }
        }
    }

    #[test]
    fn a_verdict_says_nothing_that_it_has_not() {
        use VerdictKind::{Ack, Bury, Nack, Release, Snooze};
        for (kind, query, body, code) in [
            (Ack, "delay=5s", "", "unknown_option"),
            (Release, "reason=x", "", "unknown_option"),
            (Bury, "delay=5s", "", "unknown_option"),
            (Bury, "", r#"{"delay":"5s"}"#, "bad_item"),
            (Snooze, "", r#"{"delay":"5s","reason":"x"}"#, "bad_item"),
            (Snooze, "", "", "bad_option"),
            (Snooze, "", "{}", "bad_option"),
            (Nack, "", r#"{"dealy":"5s"}"#, "bad_json"),
            (Nack, "", r#"{"delay":5}"#, "bad_json"),
            (Nack, "", "busy", "bad_json"),
        ] {
            assert_eq!(told(kind, query, body).unwrap_err().code, code, "{kind:?} {query} {body}");
        }
    }
}
