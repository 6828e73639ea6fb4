use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::cli::table::printable;

/// What a JSON object holds, a line each, for people.
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The fields of `document` that are set, in their order; those of an object within it are named after both.
    pub(crate) fn of(document: &impl Serialize) -> Fields {
        let mut fields = Vec::new();
        if let Ok(Value::Object(object)) = serde_json::to_value(document) {
            for (name, value) in object {
                flatten(&name.replace('_', " "), value, &mut fields);
            }
        }
        Fields(fields)
    }
}

fn flatten(name: &str, value: Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(object) if name != "payload" => {
            for (inner, value) in object {
                flatten(&format!("{name} {inner}"), value, fields);
            }
        }
        Value::String(text) => fields.push((name.to_string(), text)),
        other => fields.push((name.to_string(), other.to_string())),
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        for (name, value) in &self.0 {
            writeln!(f, "{name:<width$}  {}", printable(value))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shows_what_is_set() {
        let document = json!({
            "id": "a", "due": null, "max_attempts": 3, "headers": { "Tenant": "x" },
            "payload": { "to": "ann" }, "reason": "line\nbreak"
        });
        assert_eq!(
            Fields::of(&document).to_string(),
            "id              a\nmax attempts    3\nheaders Tenant  x\npayload         {\"to\":\"ann\"}\nreason          line\\nbreak\n"
        );
    }
}
