use std::fmt;

use serde::Serialize;

use super::Load;

/// What was found.
#[derive(Clone, Debug)]
pub struct Report {
    costs: Vec<Costs>,
    is_compared: bool,
}

/// What a load cost in each round, in microseconds a job.
#[derive(Clone, Debug)]
struct Costs {
    load: Load,
    serve: Vec<f64>,
    against: Vec<f64>,
}

/// A median, and between which values it is with a probability of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The median of what was found.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What a load costs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figure {
    /// Which.
    pub load: Load,
    /// What it costs, as a part of what it costs the program that this one is compared to, round by round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval>,
    /// Microseconds of CPU a job.
    pub us: Interval,
    /// Those of the program that this one is compared to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_us: Option<Interval>,
    /// In how many rounds.
    pub rounds: usize,
}

impl Report {
    pub(super) fn new(is_compared: bool) -> Report {
        let of = |load| Costs { load, serve: Vec::new(), against: Vec::new() };
        Report { costs: Load::ALL.map(of).into(), is_compared }
    }

    /// What a load cost in one round: the program, and the one that it is compared to.
    pub(super) fn add(&mut self, load: Load, costs: &[f64]) {
        let found = self.costs.iter_mut().find(|costs| costs.load == load);
        if let (Some(found), [serve, against @ ..]) = (found, costs) {
            found.serve.push(*serve);
            found.against.extend(against);
        }
    }

    /// Whether what counts, the ratios if there are any, is known to this part of itself.
    pub(super) fn is_within(&self, precision: f64) -> bool {
        self.figures().iter().all(|figure| figure.ratio.unwrap_or(figure.us).is_within(precision))
    }

    /// What each load costs.
    pub fn figures(&self) -> Vec<Figure> {
        let figure = |costs: &Costs| {
            let Costs { load, serve, against } = costs;
            let ratios = serve.iter().zip(against).map(|(serve, against)| serve / against);
            Figure {
                load: *load,
                ratio: self.is_compared.then(|| Interval::of(ratios.collect())),
                us: Interval::of(serve.clone()),
                against_us: self.is_compared.then(|| Interval::of(against.clone())),
                rounds: serve.len(),
            }
        };
        self.costs.iter().map(figure).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<18}  {:<22}  {:<22}  {:<22}  rounds", "load", "ratio", "µs of CPU a job", "against")?;
        for Figure { load, ratio, us, against_us, rounds } in self.figures() {
            let [ratio, against] = [(ratio, 3), (against_us, 2)].map(|(interval, digits)| {
                interval.map_or_else(|| "-".to_owned(), |found| found.shown(digits))
            });
            writeln!(f, "{:<18}  {ratio:<22}  {:<22}  {against:<22}  {rounds}", load.name(), us.shown(2))?;
        }
        Ok(())
    }
}

impl Interval {
    /// Of values in any order. Half of a median's neighbours are on either side of it, as coins fall.
    pub(crate) fn of(mut values: Vec<f64>) -> Interval {
        values.sort_by(f64::total_cmp);
        let at =
            |index: usize| values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN);
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let away = (0.98 * (values.len() as f64).sqrt()).ceil() as usize;
        let middle = values.len() / 2;
        Interval { median: at(middle), low: at(middle.saturating_sub(away)), high: at(middle + away) }
    }

    fn is_within(self, precision: f64) -> bool {
        self.high - self.low <= 2.0 * precision * self.median
    }

    pub(crate) fn shown(self, digits: usize) -> String {
        let Interval { median, low, high } = self;
        format!("{median:.digits$} ({low:.digits$}–{high:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_has_its_neighbours_for_an_interval() {
        let interval = Interval::of((0..100).rev().map(f64::from).collect());
        assert_eq!(interval, Interval { median: 50.0, low: 40.0, high: 60.0 });
        assert!(interval.is_within(0.2) && !interval.is_within(0.19));
        assert_eq!(interval.shown(1), "50.0 (40.0–60.0)");
        assert!(Interval::of(Vec::new()).median.is_nan());
    }

    #[test]
    fn a_ratio_is_that_of_a_round() {
        let mut report = Report::new(true);
        for machine in [1.0, 10.0, 3.0] {
            for load in Load::ALL {
                report.add(load, &[2.0 * machine, 4.0 * machine]);
            }
        }
        assert!(report.is_within(0.0), "both are slow together");
        let figure = report.figures()[0];
        assert_eq!((figure.ratio.unwrap().median, figure.us.median, figure.rounds), (0.5, 6.0, 3));
        assert!(report.to_string().contains("0.500 (0.500–0.500)"), "{report}");
        let mut alone = Report::new(false);
        alone.add(Load::Publish, &[1.0]);
        assert!(alone.figures()[0].ratio.is_none());
    }
}
