use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::{Mutex, PoisonError};

use delayline_tests::report;

/// Where the counts are kept.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.txt");
/// The variable by which they are recorded anew.
const UPDATE: &str = "UPDATE_COUNTS";
const HEAD: &str = "\
# What steps of the core and calls of the scripts cost: instructions, and how often memory is asked for. After the name of each
# group stands by what it was counted. Recorded by `UPDATE_COUNTS=1 tests/run tests/counted`.
";

/// Numbers, instructions first, by the name of the step.
pub(crate) type Counts = BTreeMap<String, Vec<f64>>;

/// What is counted together, by one tool.
pub(crate) struct Group {
    /// As in `core`.
    pub(crate) name: &'static str,
    /// By what it was counted, as in `rustc 1.95.0`: other tools, other counts.
    pub(crate) by: String,
    /// How far a count may be off, in percent, if it was recorded by the same.
    pub(crate) tolerance: f64,
    /// How far if it was recorded by something else.
    pub(crate) wide: f64,
    /// What was counted.
    pub(crate) counts: Counts,
}

/// Whether counts are recorded, not compared.
pub(crate) fn is_update() -> bool {
    std::env::var_os(UPDATE).is_some()
}

impl Group {
    /// Compares with what was recorded, or records, and answers what is recorded then. Less than was recorded is as wrong as
    /// more: it would guard nothing any more.
    pub(crate) fn hold(&self) -> Counts {
        if is_update() {
            self.record();
            return self.counts.clone();
        }
        let kept = fs::read_to_string(PATH).unwrap_or_default();
        let (by, recorded) = section(&kept, self.name).unwrap_or_default();
        let tolerance = if by == self.by { self.tolerance } else { self.wide };
        if by != self.by {
            report(&format!(
                "left out: counts of {} as exact as {} % (recorded by {by}, here is {}): they are held to {} %",
                self.name, self.tolerance, self.by, self.wide
            ));
        }
        let wrong = differences(&recorded, &self.counts, tolerance);
        assert!(
            wrong.is_empty(),
            "not within {tolerance} % of what tests/counts.txt says; if it is meant to be so, record it anew by \
             `{UPDATE}=1 tests/run tests/counted`:\n{}",
            wrong.join("\n")
        );
        recorded
    }

    /// Writes these counts in the place of those that were kept.
    fn record(&self) {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = fs::read_to_string(PATH).unwrap_or_default();
        let mut sections: BTreeMap<&str, (String, Counts)> = BTreeMap::new();
        for name in ["core", "scripts"] {
            sections.extend(section(&kept, name).map(|section| (name, section)));
        }
        sections.insert(self.name, (self.by.clone(), self.counts.clone()));
        let mut text = HEAD.to_owned();
        for (name, (by, counts)) in sections {
            let _ = writeln!(text, "\n[{name}] {by}");
            for (step, numbers) in counts {
                let numbers: Vec<String> = numbers.iter().map(|number| format!("{number:>9}")).collect();
                let _ = writeln!(text, "{step:<30}  {}", numbers.join(" "));
            }
        }
        fs::write(PATH, text).expect("the counts are written");
    }
}

/// What was recorded of a group, and by what.
fn section(text: &str, name: &str) -> Option<(String, Counts)> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("[{name}] ")));
    let by = lines.next()?.split_once("] ")?.1.to_owned();
    let counts = lines.map_while(|line| {
        let (step, numbers) = line.split_once("  ")?;
        let numbers = numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>();
        Some((step.to_owned(), numbers.unwrap_or_default()))
    });
    Some((by, counts.collect()))
}

/// What differs by more than so many percent, or is there in one of the two only.
fn differences(recorded: &Counts, counted: &Counts, tolerance: f64) -> Vec<String> {
    let mut wrong: Vec<String> = recorded
        .keys()
        .filter(|step| !counted.contains_key(*step))
        .map(|step| format!("{step}: recorded, but not counted any more"))
        .collect();
    for (step, numbers) in counted {
        let Some(before) = recorded.get(step) else {
            wrong.push(format!("{step}: {numbers:?}, not recorded yet"));
            continue;
        };
        let is_near = |(now, before): (&f64, &f64)| (now - before).abs() <= before * tolerance / 100.0;
        if before.len() != numbers.len() || !numbers.iter().zip(before).all(is_near) {
            wrong.push(format!("{step}: {numbers:?}, recorded are {before:?}"));
        }
    }
    wrong
}

#[test]
fn what_differs_too_much_or_is_missing_is_told() {
    let text = "# head\n\n[core] rustc 1\na b, c                100.5    3\nd                     50    0\n\n[scripts] redis 7\ne  1\n";
    let (by, recorded) = section(text, "core").expect("a section");
    assert_eq!((by.as_str(), recorded.len()), ("rustc 1", 2));
    let counted = |a: f64, allocations: f64| {
        BTreeMap::from([("a b, c".to_owned(), vec![a, allocations]), ("d".to_owned(), vec![50.0, 0.0])])
    };
    assert!(differences(&recorded, &counted(103.5, 3.0), 3.0).is_empty());
    assert_eq!(differences(&recorded, &counted(103.6, 3.0), 3.0).len(), 1);
    assert_eq!(differences(&recorded, &counted(97.4, 3.0), 3.0).len(), 1);
    assert_eq!(differences(&recorded, &counted(100.5, 4.0), 3.0).len(), 1);
    let others = BTreeMap::from([("f".to_owned(), vec![1.0])]);
    assert_eq!(differences(&recorded, &others, 3.0).len(), 3);
}
