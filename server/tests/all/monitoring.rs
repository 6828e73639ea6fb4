//! The dashboard and the alert rules of deploy/: each names what /metrics has, and promtool fires each rule.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use promql_parser::label::Matchers;
use promql_parser::parser::{self, AggregateExpr, Expr, LabelModifier, MatrixSelector, VectorSelector};
use promql_parser::util::{ExprVisitor, walk_expr};
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

use crate::metrics::documented;

/// Labels that Prometheus adds to every series of a target, and the bound of a histogram's buckets.
const ADDED: [&str; 3] = ["instance", "job", "le"];

/// What an expression of PromQL speaks of.
#[derive(Default)]
struct Named {
    metrics: BTreeSet<String>,
    labels: BTreeSet<String>,
}

impl ExprVisitor for Named {
    type Error = String;

    fn pre_visit(&mut self, expr: &Expr) -> Result<bool, String> {
        match expr {
            Expr::VectorSelector(selector) => self.selects(selector),
            Expr::MatrixSelector(MatrixSelector { vs, .. }) => self.selects(vs),
            Expr::Aggregate(AggregateExpr { modifier: Some(LabelModifier::Include(by)), .. }) => {
                self.labels.extend(by.labels.iter().cloned());
            }
            _ => {}
        }
        Ok(true)
    }
}

impl Named {
    fn of(promql: &str) -> Named {
        let expr = parser::parse(promql).unwrap_or_else(|error| panic!("{promql}: {error}"));
        let mut named = Named::default();
        walk_expr(&mut named, &expr).unwrap();
        named
    }

    fn selects(&mut self, VectorSelector { name, matchers: Matchers { matchers, .. }, .. }: &VectorSelector) {
        self.metrics.insert(name.clone().expect("a metric"));
        self.labels.extend(matchers.iter().map(|matcher| matcher.name.clone()));
    }
}

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file)
}

fn read(file: &str) -> String {
    let path = deploy(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails unless the expression names metrics and labels that there are. What is documented is what the service exposes: the
/// tests of metrics hold them to each other.
#[track_caller]
fn is_of_what_there_is(promql: &str) {
    let (known, named) = (documented(), Named::of(promql));
    assert!(!named.metrics.is_empty(), "{promql} looks at nothing");
    let mut labels: BTreeSet<&str> = ADDED.into();
    for metric in &named.metrics {
        let parts = ["_bucket", "_sum", "_count"].into_iter().filter_map(|part| metric.strip_suffix(part));
        let histogram =
            parts.into_iter().find(|family| known.get(family).is_some_and(|(kind, _)| *kind == "histogram"));
        let family = histogram.unwrap_or(metric);
        let Some((kind, of)) = known.get(family) else { panic!("{promql}: there is no {metric}") };
        assert_eq!(*kind == "histogram", histogram.is_some(), "{promql}: {metric} is a {kind}");
        labels.extend(of);
    }
    for label in &named.labels {
        assert!(labels.contains(&**label), "{promql}: {:?} have no label {label}", named.metrics);
    }
}

fn alerts() -> BTreeMap<String, String> {
    let file = read("prometheus/alerts.yml");
    let documents = Yaml::load_from_str(&file).unwrap();
    let groups = documents[0].as_mapping_get("groups").and_then(Yaml::as_sequence).expect("groups");
    let rules = groups
        .iter()
        .flat_map(|group| group.as_mapping_get("rules").and_then(Yaml::as_sequence).expect("rules"));
    let text =
        |rule: &Yaml<'_>, name| rule.as_mapping_get(name).and_then(Yaml::as_str).expect("a text").to_owned();
    let alerts = rules.map(|rule| {
        let annotations = rule.as_mapping_get("annotations").expect("annotations");
        for name in ["summary", "runbook"] {
            assert!(!text(annotations, name).is_empty());
        }
        (text(rule, "alert"), text(rule, "expr"))
    });
    alerts.collect()
}

#[test]
fn the_alerts_look_at_what_there_is() {
    let alerts = alerts();
    assert!(alerts.len() >= 8, "{alerts:?}");
    for expr in alerts.values() {
        is_of_what_there_is(expr);
    }
}

#[test]
fn the_dashboard_shows_what_there_is() {
    let dashboard: Value = serde_json::from_str(&read("grafana/delayline.json")).unwrap();
    let mut ids = BTreeSet::new();
    let mut shown = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            is_of_what_there_is(&target["expr"].as_str().unwrap().replace("$__rate_interval", "5m"));
            shown += 1;
        }
    }
    assert!(shown >= 15, "{shown}");
    for variable in
        dashboard["templating"]["list"].as_array().unwrap().iter().filter(|it| it["type"] == "query")
    {
        let query = variable["definition"].as_str().unwrap();
        let (series, label) = query
            .strip_prefix("label_values(")
            .and_then(|query| query.strip_suffix(')')?.rsplit_once(", "))
            .unwrap_or_else(|| panic!("{query}"));
        is_of_what_there_is(&format!("sum by ({label}) ({series})"));
    }
}

#[test]
#[should_panic(expected = "there is no delayline_queue_ages")]
fn a_metric_that_is_not_there_is_noticed() {
    is_of_what_there_is("max(delayline_queue_ages)");
}

#[test]
#[should_panic(expected = "have no label shard")]
fn a_label_that_is_not_there_is_noticed() {
    is_of_what_there_is("max by (shard) (delayline_queue_jobs)");
}

#[test]
fn every_rule_fires_when_it_should_and_not_otherwise() {
    let promtool = |words: &[&str]| {
        let output = Command::new("promtool").args(words).current_dir(deploy("prometheus")).output();
        let output = output.expect("this test needs promtool: apt-get install prometheus");
        assert!(output.status.success(), "promtool {words:?}: {output:?}");
    };
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts_test.yml"]);

    let file = read("prometheus/alerts_test.yml");
    let documents = Yaml::load_from_str(&file).unwrap();
    let tests = documents[0].as_mapping_get("tests").and_then(Yaml::as_sequence).expect("tests");
    let cases = tests.iter().flat_map(|test| {
        test.as_mapping_get("alert_rule_test").and_then(Yaml::as_sequence).expect("cases of alerts")
    });
    let (mut fired, mut quiet) = (BTreeSet::new(), BTreeSet::new());
    for case in cases {
        let name = case.as_mapping_get("alertname").and_then(Yaml::as_str).expect("a name").to_owned();
        let alerts = case.as_mapping_get("exp_alerts").and_then(Yaml::as_sequence).expect("alerts");
        if alerts.is_empty() {
            quiet.insert(name)
        } else {
            fired.insert(name)
        };
    }
    let all: BTreeSet<String> = alerts().into_keys().collect();
    assert_eq!((&fired, &quiet), (&all, &all));
}
