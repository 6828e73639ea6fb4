use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::destination::Sizes;
use crate::cli::print;
use crate::cli::table::{Align, Table};
use crate::failure::Failure;

/// How many elements that were left are shown for each reason.
const SAMPLES: usize = 3;
/// How many bytes of such an element are shown.
const SHOWN: usize = 48;
/// How many reasons are told apart.
const REASONS: usize = 100;

/// Where elements of the old system are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Ready,
    Delayed,
    Dead,
    /// In the journal: a run that was broken off has taken them.
    Journal,
}

/// What became of the elements of a place.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Row {
    pub(super) before: u64,
    pub(super) moved: u64,
    /// Their jobs were published by a run that was broken off.
    pub(super) already_there: u64,
    /// Nothing was left to move: acknowledged, deleted or expired.
    pub(super) gone: u64,
    pub(super) left: u64,
    pub(super) after: u64,
}

/// Elements that were left where they are, for one reason.
#[derive(Clone, Debug, Default, Serialize)]
struct Left {
    count: u64,
    samples: Vec<String>,
}

/// What an import has done.
#[derive(Default)]
pub(super) struct Report {
    rows: BTreeMap<Place, Row>,
    left: BTreeMap<String, Left>,
    pub(super) notes: Vec<String>,
    is_dry: bool,
}

/// What both sides hold.
pub(super) struct Sides<'a> {
    pub(super) source: &'a str,
    pub(super) destination: &'a str,
    pub(super) queues: usize,
    /// Before and after.
    pub(super) sizes: (Sizes, Sizes),
}

impl Place {
    const ALL: [Place; 4] = [Place::Ready, Place::Delayed, Place::Dead, Place::Journal];

    fn name(self) -> &'static str {
        match self {
            Place::Ready => "ready",
            Place::Delayed => "delayed",
            Place::Dead => "dead",
            Place::Journal => "journal",
        }
    }
}

impl Report {
    /// Of an import that moves nothing, if it is dry.
    pub(super) fn new(is_dry: bool) -> Report {
        Report { is_dry, ..Report::default() }
    }

    pub(super) fn row(&mut self, place: Place) -> &mut Row {
        self.rows.entry(place).or_default()
    }

    /// Elements are looked at once more: what is left now is what counts.
    pub(super) fn begin_pass(&mut self) {
        self.left.clear();
        self.rows.values_mut().for_each(|row| row.left = 0);
    }

    /// An element was left where it is.
    pub(super) fn leave(&mut self, place: Place, why: &str, element: &[u8]) {
        self.leave_all(place, why, 1, element);
    }

    pub(super) fn leave_all(&mut self, place: Place, why: &str, count: u64, sample: &[u8]) {
        self.row(place).left += count;
        let why =
            if self.left.contains_key(why) || self.left.len() < REASONS { why } else { "other reasons" };
        let left = self.left.entry(why.to_owned()).or_default();
        left.count += count;
        if left.samples.len() < SAMPLES {
            left.samples.push(shown(sample));
        }
    }

    pub(super) fn total(&self) -> Row {
        self.rows.values().fold(Row::default(), |total, row| Row {
            before: total.before + row.before,
            moved: total.moved + row.moved,
            already_there: total.already_there + row.already_there,
            gone: total.gone + row.gone,
            left: total.left + row.left,
            after: total.after + row.after,
        })
    }

    /// Prints what was done, or would be.
    pub(super) fn print(&self, sides: &Sides, json: bool) -> Result<(), Failure> {
        if json { print::document(&self.document(sides)) } else { print::text(self.text(sides)) }
    }

    fn document(&self, sides: &Sides) -> Value {
        let (before, after) = sides.sizes;
        let mut source = serde_json::Map::new();
        for place in Place::ALL {
            source.insert(place.name().to_owned(), json!(self.rows.get(&place).copied().unwrap_or_default()));
        }
        source.insert("total".to_owned(), json!(self.total()));
        let left: Vec<Value> = self
            .left
            .iter()
            .map(|(why, left)| json!({ "reason": why, "count": left.count, "samples": left.samples }))
            .collect();
        json!({
            "dry_run": self.is_dry,
            "source": source,
            "left": left,
            "destination": { "queues": sides.queues, "before": before, "after": after },
            "notes": self.notes,
        })
    }

    fn text(&self, sides: &Sides) -> String {
        let right = Align::Right;
        let moved = if self.is_dry { "to move" } else { "moved" };
        let mut table = Table::new(&[
            ("state", Align::Left),
            ("before", right),
            (moved, right),
            ("already there", right),
            ("gone", right),
            ("left", right),
            ("after", right),
        ]);
        let rows = Place::ALL.iter().filter_map(|place| Some((place.name(), *self.rows.get(place)?)));
        let rows = rows.filter(|(name, row)| *name != Place::Journal.name() || row.before > 0);
        for (name, row) in rows.chain([("total", self.total())]) {
            let numbers = [row.before, row.moved, row.already_there, row.gone, row.left, row.after];
            table.row([name.to_owned()].into_iter().chain(numbers.map(|number| number.to_string())));
        }
        let mut text = format!("{}\n{table}", sides.source);
        if !self.is_dry {
            let _ =
                write!(text, "\n{} queues at {}\n{}", sides.queues, sides.destination, destination(sides));
        }
        for (why, left) in &self.left {
            let _ = writeln!(text, "\n{} left: {why}", left.count);
            left.samples.iter().for_each(|sample| {
                let _ = writeln!(text, "  {sample}");
            });
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }
}

fn destination(sides: &Sides) -> Table {
    let (before, after) = sides.sizes;
    let mut table = Table::new(&[("state", Align::Left), ("before", Align::Right), ("after", Align::Right)]);
    for (name, before, after) in [
        ("ready", before.ready, after.ready),
        ("delayed", before.delayed, after.delayed),
        ("leased", before.leased, after.leased),
        ("dead", before.dead, after.dead),
    ] {
        table.row([name.to_owned(), before.to_string(), after.to_string()]);
    }
    table
}

/// The first bytes, in hex, and how many there are.
fn shown(element: &[u8]) -> String {
    let mut text = String::new();
    for byte in element.iter().take(SHOWN) {
        let _ = write!(text, "{byte:02x}");
    }
    let more = if element.len() > SHOWN { "…" } else { "" };
    format!("{text}{more} ({} bytes)", element.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_and_samples_are_bounded() {
        let mut report = Report::default();
        for i in 0..1_000_u32 {
            report.leave(Place::Delayed, &format!("reason {i}"), &i.to_be_bytes());
            report.leave(Place::Delayed, "again", &[7; 1_000]);
        }
        assert_eq!(report.row(Place::Delayed).left, 2_000);
        assert_eq!((report.left.len(), report.left["again"].count), (REASONS + 1, 1_000));
        assert_eq!(report.left["again"].samples.len(), SAMPLES);
        assert_eq!(report.left["again"].samples[0].len(), 2 * SHOWN + "… (1000 bytes)".len());
        report.begin_pass();
        assert!(report.left.is_empty() && report.total().left == 0);
    }
}
