//! Ten thousand jobs of all kinds, and what was asked for each.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use delayline_tests::Random;
use serde_json::{Value, json};

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// At its first run.
    Plain,
    /// After failures, along a ladder.
    Ladder,
    /// At its first run, at another time than first asked for.
    Moved,
    /// Never run.
    Cancelled,
    /// As a dead letter.
    Doomed,
}

#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) kind: Kind,
    pub(crate) delay_ms: u64,
    /// When it is due at the first time, in ms, as the service answered.
    pub(crate) due: u64,
    pub(crate) fails: u16,
}

pub(crate) type Plan = BTreeMap<String, Planned>;

pub(crate) const ATTEMPTS: u16 = 4;
/// How long a job waits after each failure, in ms; the last counts for all that follow.
pub(crate) const LADDER: [u64; 3] = [50, 150, 300];

/// Jobs to be published together. Those to be moved or cancelled wait long enough for it.
pub(crate) fn plan(jobs: RangeInclusive<u32>, kinds: &[(Kind, u64)], random: &mut Random) -> Plan {
    let planned = jobs.map(|number| {
        let mut draw = random.number(0..=99);
        let kind = kinds.iter().find(|(_, share)| {
            let hit = draw < *share;
            draw = draw.saturating_sub(*share);
            hit
        });
        let kind = kind.map_or(Kind::Plain, |(kind, _)| *kind);
        let (delays, fails) = match kind {
            Kind::Plain => (0..=8_000, 0..=0),
            Kind::Ladder => (0..=8_000, 1..=2),
            Kind::Moved | Kind::Cancelled => (5_000..=8_000, 0..=0),
            Kind::Doomed => (0..=8_000, 999..=999),
        };
        let fails = u16::try_from(random.number(fails)).expect("few");
        (format!("job-{number:05}"), Planned { kind, delay_ms: random.number(delays), due: 0, fails })
    });
    planned.collect()
}

impl Planned {
    /// The line of a batch that publishes it.
    pub(crate) fn line(&self, id: &str, random: &mut Random) -> String {
        let payload = json!({ "ms": random.number(1..=30), "fails": self.fails });
        let mut item = json!({ "id": id, "delay": format!("{}ms", self.delay_ms), "payload": payload });
        if self.fails > 0 {
            item["attempts"] = Value::from(ATTEMPTS);
            item["backoff"] = Value::from(LADDER.map(|ms| format!("{ms}ms")).join(" "));
        }
        format!("{item}\n")
    }
}
