use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, String>;

/// Prometheus text, read strictly: a family once, its HELP and TYPE before its samples, no series twice, histograms that
/// add up.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    helps: BTreeSet<String>,
    kinds: BTreeMap<String, String>,
    samples: BTreeMap<(String, Labels), f64>,
}

impl Exposition {
    #[track_caller]
    pub(crate) fn read(text: &str) -> Exposition {
        assert!(text.ends_with('\n'), "the last line has an end");
        let (mut read, mut family) = (Exposition::default(), String::new());
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap_or((help, ""));
                assert!(is_name(name) && !help.is_empty(), "{line}");
                assert!(read.helps.insert(name.to_owned()), "twice: {line}");
                assert!(!read.kinds.contains_key(name), "after its TYPE: {line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap_or((kind, ""));
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(read.helps.contains(name), "before its HELP: {line}");
                assert!(read.kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {line}");
                name.clone_into(&mut family);
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap_or((line, ""));
                let (name, labels) = series_of(series);
                assert!(read.is_of(&name, &labels, &family), "not of the family {family:?}: {line}");
                let value: f64 = value.parse().unwrap_or_else(|_| panic!("no value: {line}"));
                assert!(value.is_finite() && value >= 0.0, "{line}");
                assert!(read.samples.insert((name, labels), value).is_none(), "twice: {line}");
            }
        }
        assert!(read.helps.iter().eq(read.kinds.keys()), "HELP without TYPE: {read:?}");
        read.check_histograms();
        read
    }

    pub(crate) fn families(&self) -> BTreeSet<&str> {
        self.kinds.keys().map(String::as_str).collect()
    }

    pub(crate) fn kind(&self, family: &str) -> &str {
        &self.kinds[family]
    }

    /// The sample of this name and exactly these labels, in the default namespace unless they say another; 0 if there is
    /// none.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned()));
        let mut labels: Labels = labels.collect();
        if labels.contains_key("queue") {
            labels.entry("namespace".to_owned()).or_default();
        }
        self.samples.get(&(name.to_owned(), labels)).copied().unwrap_or_default()
    }

    /// The labels of each of its samples of this name.
    pub(crate) fn series(&self, name: &str) -> Vec<&Labels> {
        self.samples.keys().filter(|(found, _)| found == name).map(|(_, labels)| labels).collect()
    }

    /// The names of the labels of a family, beside the bounds of buckets.
    pub(crate) fn labels(&self, family: &str) -> BTreeSet<&str> {
        let samples = self.samples.keys().filter(|(name, labels)| self.is_of(name, labels, family));
        samples
            .flat_map(|(_, labels)| labels.keys())
            .map(String::as_str)
            .filter(|label| *label != "le")
            .collect()
    }

    fn is_of(&self, name: &str, labels: &Labels, family: &str) -> bool {
        let Some(rest) = name.strip_prefix(family) else { return false };
        match self.kinds.get(family).map(String::as_str) {
            Some("histogram") => match rest {
                "_bucket" => labels.contains_key("le"),
                "_sum" | "_count" => !labels.contains_key("le"),
                _ => false,
            },
            Some(_) => rest.is_empty(),
            None => false,
        }
    }

    #[track_caller]
    fn check_histograms(&self) {
        for (family, _) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            let mut histograms: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((name, labels), value) in &self.samples {
                let mut labels = labels.clone();
                if let Some(bound) = labels.remove("le").filter(|_| *name == format!("{family}_bucket")) {
                    histograms.entry(labels).or_default().push((bound.parse().unwrap(), *value));
                }
            }
            for (labels, mut buckets) in histograms {
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert!(buckets.is_sorted_by_key(|(_, count)| *count), "{family} {labels:?}: {buckets:?}");
                let count = self.samples[&(format!("{family}_count"), labels.clone())];
                assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{family} {labels:?}");
                assert!(self.samples.contains_key(&(format!("{family}_sum"), labels)), "{family}");
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[track_caller]
fn series_of(series: &str) -> (String, Labels) {
    let (name, mut rest) = series.split_once('{').unwrap_or((series, "}"));
    assert!(is_name(name), "{series}");
    let mut labels = Labels::new();
    while rest != "}" {
        let (label, quoted) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {series}"));
        let end = end_of(quoted).unwrap_or_else(|| panic!("no end of a value: {series}"));
        assert!(is_name(label), "{series}");
        assert!(
            labels.insert(label.to_owned(), quoted[..end].to_owned()).is_none(),
            "{label} twice: {series}"
        );
        rest = &quoted[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name.to_owned(), labels)
}

/// The first quote that is not escaped.
fn end_of(quoted: &str) -> Option<usize> {
    let mut escaped = false;
    quoted.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })
}
