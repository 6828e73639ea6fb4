use std::fmt;

use serde::{Deserialize, Serialize};

use super::rounds::{Base, Round, Sample};
use crate::http_cost::Interval;

/// What a bench has found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What the bench is called on the command line.
    pub bench: &'static str,
    /// The server, as it names itself.
    pub server: String,
    /// How this program was built: `release` or `dev`.
    pub profile: &'static str,
    /// How many rounds count.
    pub rounds: usize,
    /// How many there were: those count in which others used the CPUs least.
    pub tried: usize,
    /// How many CPUs others used, in the loudest of those that count.
    pub others: f64,
    /// The figures, in the order in which they were first found.
    pub rows: Vec<Row>,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was done, as `100 queues`.
    pub case: String,
    /// By whom: `this`, or what it is compared to.
    pub of: String,
    /// What was counted, with its unit, as `jobs/s`.
    pub figure: String,
    /// The median, and between which values it is with a probability of 95 %.
    pub value: Interval,
    /// What it is compared to.
    pub ratio: Option<Ratio>,
    /// What each round found.
    pub values: Vec<f64>,
}

/// What a figure is, as a part of another, round by round.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// Of whose: a case, or one of those that are compared.
    pub to: String,
    /// The part.
    pub value: Interval,
}

/// As much of another program's report as is compared.
#[derive(Deserialize)]
pub(super) struct Theirs {
    rows: Vec<TheirRow>,
}

#[derive(Deserialize)]
struct TheirRow {
    case: String,
    of: String,
    figure: String,
    values: Vec<f64>,
}

impl Report {
    pub(super) fn new(bench: &'static str, server: String, tried: usize, rounds: &[Round]) -> Report {
        let mut rows: Vec<Row> = Vec::new();
        for sample in rounds.iter().flat_map(|round| &round.samples) {
            if !rows.iter().any(|row| row.is_of(sample)) {
                rows.push(Row::new(sample, rounds));
            }
        }
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let others = rounds.iter().map(|round| round.others).fold(0.0, f64::max);
        Report { bench, server, profile, rounds: rounds.len(), tried, others, rows }
    }
}

impl Row {
    fn new(sample: &Sample, rounds: &[Round]) -> Row {
        let Sample { case, of, figure, base, .. } = sample.clone();
        let found = |case: &str, of: &str, round: &Round| -> Option<f64> {
            let is_it = |other: &&Sample| other.case == case && other.of == of && other.figure == figure;
            round.samples.iter().find(is_it).map(|other| other.value)
        };
        let values: Vec<f64> = rounds.iter().filter_map(|round| found(&case, &of, round)).collect();
        let (to, base_case, base_of) = match &base {
            Base::None => ("", case.as_str(), of.as_str()),
            Base::Case(name) => (name.as_str(), name.as_str(), of.as_str()),
            Base::Of(name) => (*name, case.as_str(), *name),
        };
        let is_base = (base_case, base_of) == (&case, &of);
        let ratio = |round| Some(found(&case, &of, round)? / found(base_case, base_of, round)?);
        let ratios: Vec<f64> = rounds.iter().filter_map(ratio).filter(|ratio| ratio.is_finite()).collect();
        let ratio = (!is_base && !ratios.is_empty())
            .then(|| Ratio { to: to.to_owned(), value: Interval::of(ratios) });
        Row { value: Interval::of(values.clone()), ratio, values, case, of, figure }
    }

    fn is_of(&self, sample: &Sample) -> bool {
        (&self.case, &self.of, &self.figure) == (&sample.case, &sample.of, &sample.figure)
    }
}

impl Theirs {
    /// As samples of one round, under another name.
    pub(super) fn samples(self, of: &str) -> Vec<Sample> {
        let sample = |row: TheirRow| {
            let of = if row.of == "this" { of.to_owned() } else { format!("{of}, {}", row.of) };
            let value = Interval::of(row.values).median;
            Sample { case: row.case, of, figure: row.figure, value, base: Base::None }
        };
        self.rows.into_iter().map(sample).collect()
    }
}

impl fmt::Display for Report {
    /// A table, as people read it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { bench, server, profile, rounds, tried, others, rows } = self;
        writeln!(
            f,
            "{bench}: {server}, {profile} profile, {rounds} of {tried} rounds; others used up to {others:.2} CPUs"
        )?;
        let wide =
            |text: fn(&Row) -> &str| rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0);
        let (cases, ofs, figures) = (wide(|row| &row.case), wide(|row| &row.of), wide(|row| &row.figure));

        writeln!(
            f,
            "medians, the ranges in which they are with a probability of 95 %, and ratios round by round:"
        )?;
        for Row { case, of, figure, value, ratio, .. } in rows {
            let ratio = ratio
                .as_ref()
                .map_or_else(String::new, |Ratio { to, value }| format!("{} of {to}", value.shown(2)));
            let line = format!("{case:cases$}  {of:ofs$}  {figure:figures$}  {:<22}  {ratio}", shown(*value));
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Three digits, or all before the point.
pub(super) fn shown(value: Interval) -> String {
    value.shown(match value.median {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    })
}
