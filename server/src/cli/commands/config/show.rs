use delayline_http::Document;
use delayline_tokio::QueueName;
use serde_json::{Map, Value, json};

use crate::cli::fields::Fields;
use crate::cli::print;
use crate::cli::settings::{Setting, Settings, Source};
use crate::cli::table::{Align, Table};
use crate::failure::Failure;

pub(super) fn show(settings: &Settings, json: bool) -> Result<(), Failure> {
    if json {
        return print::document(settings);
    }
    let mut table = Table::new(&[("setting", Align::Left), ("value", Align::Left), ("from", Align::Left)]);
    for Setting { name, value, source } in &settings.settings {
        let from = match (source, &settings.file) {
            (Source::File, Some(file)) => file.display().to_string(),
            (source, _) => source.to_string(),
        };
        table.row([name.clone(), value.clone().unwrap_or("(not set)".into()), from]);
    }
    print::text(table)
}

/// What is said of a value that neither the config nor a default sets.
const UNSET: [(&str, &str); 5] = [
    ("retention", "for ever"),
    ("max_jobs", "2000000 unless its publishers say otherwise"),
    ("max_bytes", "no limit unless its publishers say otherwise"),
    ("forward", "nowhere"),
    ("push", "nowhere"),
];

/// Shows the config of a queue with all that it does not say itself.
pub(super) fn config(name: &QueueName, cfgver: u64, config: &Document, json: bool) -> Result<(), Failure> {
    let set = serde_json::to_value(config).unwrap_or_default();
    let mut in_force = Document::defaults();
    if !json {
        let mut shown: Map<String, Value> =
            in_force.iter().map(|(name, default)| (name.clone(), by_default(name, default).into())).collect();
        // A document always says `bury_expired`.
        let said = set.as_object().into_iter().flatten();
        let said = said.filter(|(name, value)| !value.is_boolean() || in_force.get(*name) != Some(value));
        shown.extend(said.map(|(name, value)| (name.clone(), value.clone())));
        let document = json!({ "queue": name.as_str(), "cfgver": cfgver, "config": shown });
        return print::text(Fields::of(&document));
    }
    if let Value::Object(set) = &set {
        in_force.extend(set.clone());
    }
    print::document(&json!({ "queue": name.as_str(), "cfgver": cfgver, "config": set, "in_force": in_force }))
}

fn by_default(name: &str, default: &Value) -> String {
    let unset = UNSET.iter().find(|(unset, _)| *unset == name).map_or("none", |(_, said)| said);
    match default {
        Value::Null => format!("{unset} (default)"),
        Value::String(text) => format!("{text} (default)"),
        other => format!("{other} (default)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_default_is_marked() {
        for (name, says) in [
            ("attempts", "10 (default)"),
            ("backoff", "exponential 1s..1h jitter 10% (default)"),
            ("retention", "for ever (default)"),
            ("max_jobs", "2000000 unless its publishers say otherwise (default)"),
            ("bury_expired", "false (default)"),
        ] {
            assert_eq!(by_default(name, &Document::defaults()[name]), says);
        }
    }
}
