use super::Options;
use super::bed::Bed;
use super::report::Report;
use super::usage::Moment;

/// What is measured again and again, each time all that is compared, by turns.
pub(super) trait Rounds {
    /// What it is called on the command line.
    fn name(&self) -> &'static str;

    /// What the servers and services have used that live longer than a round, beside the bed: seconds of CPU.
    fn cpu(&mut self) -> f64 {
        0.0
    }

    /// Measures each thing once. Whoever comes second finds the machine as the other left it: the round's number says
    /// who begins.
    fn round(&mut self, bed: &mut Bed, round: usize, jobs: usize) -> Vec<Sample>;
}

/// What a number is compared to within a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Nothing.
    None,
    /// What the same one does in this case.
    Case(String),
    /// What this one does in the same case.
    Of(&'static str),
}

/// One number that a round has found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// What was done, as `100 queues`.
    pub(super) case: String,
    /// By whom: `this`, or what it is compared to.
    pub(super) of: String,
    /// What was counted, with its unit, as `jobs/s`.
    pub(super) figure: String,
    pub(super) value: f64,
    pub(super) base: Base,
}

/// A round, and how many CPUs others used meanwhile.
pub(super) struct Round {
    pub(super) others: f64,
    pub(super) samples: Vec<Sample>,
}

/// Goes round by round until so many were quiet, or there are most. Those count that met the least of others: which these
/// are is not decided by what they found.
pub(super) fn run(rounds: &mut dyn Rounds, bed: &mut Bed, options: &Options) -> Report {
    if options.warms_up {
        rounds.round(bed, 0, options.jobs.div_ceil(10));
    }
    let mut all: Vec<Round> = Vec::new();
    let most = options.most_rounds.max(options.rounds);
    while all.iter().filter(|round| round.others <= options.quiet).count() < options.rounds
        && all.len() < most
    {
        let moment = Moment::now(own(rounds, bed));
        let samples = rounds.round(bed, all.len(), options.jobs);
        all.push(Round { others: moment.others(own(rounds, bed)), samples });
    }
    let tried = all.len();
    all.sort_by(|one, other| one.others.total_cmp(&other.others));
    all.truncate(options.rounds);
    Report::new(rounds.name(), bed.name(), tried, &all)
}

/// What the bench's own servers have used so far.
fn own(rounds: &mut dyn Rounds, bed: &mut Bed) -> f64 {
    rounds.cpu() + bed.spent().redis_us / 1e6
}

/// What was found in one case, by this one.
pub(super) fn found(case: &str, base: &Base, figures: &[(&str, f64)]) -> Vec<Sample> {
    let sample = |&(figure, value): &(&str, f64)| Sample {
        case: case.to_owned(),
        of: "this".to_owned(),
        figure: figure.to_owned(),
        value,
        base: base.clone(),
    };
    figures.iter().map(sample).collect()
}
