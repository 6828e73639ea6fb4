//! The document for people: every route with what it takes and answers, every type, every problem.

use std::fmt::{self, Display, Formatter, Write as _};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};

use super::CODES;

const BASE: &str = "http://127.0.0.1:4747";
/// What stands for itself in a query.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'&').add(b'+').add(b'%').add(b'\'');
const ERROR: &str = "application/problem+json";

/// The document as Markdown.
pub(super) struct Page<'a>(pub(super) &'a Value);

/// An operation of the document.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    said: &'a Value,
}

impl Display for Page<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Page(document) = self;
        writeln!(f, "# HTTP API\n")?;
        writeln!(
            f,
            "<!-- Made from openapi.json by `UPDATE_DOCS=1 cargo test -p delayline --test all -- openapi`. -->\n"
        )?;
        writeln!(f, "{}\n", text(&document["info"]["description"]))?;
        let operations = operations(document);
        let tags = document["tags"].as_array().map_or(&[][..], Vec::as_slice);
        for tag in tags {
            writeln!(f, "## {}\n\n{}\n", text(&tag["name"]), text(&tag["description"]))?;
            let of_tag = || operations.iter().filter(|operation| operation.said["tags"][0] == tag["name"]);
            writeln!(f, "| Route | | Scope |\n|---|---|---|")?;
            for operation in of_tag() {
                operation.row(f)?;
            }
            writeln!(f)?;
            for operation in of_tag() {
                operation.section(f)?;
            }
        }
        types(f, &document["components"]["schemas"])?;
        writeln!(f, "## Problems\n\nEvery `code` with the statuses that it is answered with.\n")?;
        writeln!(f, "| Code | Status | |\n|---|---|---|")?;
        for known in CODES {
            let statuses: Vec<String> = known.statuses.iter().map(u16::to_string).collect();
            writeln!(f, "| `{}` | {} | {} |", known.code, statuses.join(", "), known.text)?;
        }
        Ok(())
    }
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, said)| Operation { method, path, said })
    });
    all.collect()
}

impl Operation<'_> {
    fn row(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let summary = text(&self.said["summary"]);
        let scope = self.scope().map_or("none".to_owned(), |scope| format!("`{scope}`"));
        writeln!(f, "| `{}` | [{summary}](#{}) | {scope} |", self.name(), slug(summary))
    }

    fn section(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n\n`{}`\n", text(&self.said["summary"]), self.name())?;
        writeln!(f, "{}\n", text(&self.said["description"]))?;
        let parameters = self.parameters();
        if !parameters.is_empty() {
            writeln!(f, "| Parameter | In | Type | |\n|---|---|---|---|")?;
            for parameter in parameters {
                let needed = if parameter["required"] == true { " Required." } else { "" };
                writeln!(
                    f,
                    "| `{}` | {} | {} | {}{needed} |",
                    text(&parameter["name"]),
                    text(&parameter["in"]),
                    kind(&parameter["schema"]),
                    text(&parameter["description"])
                )?;
            }
            writeln!(f)?;
        }
        self.body(f)?;
        self.answers(f)?;
        self.problems(f)
    }

    fn body(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let body = &self.said["requestBody"];
        if body.is_object() {
            let needed = if body["required"] == true { "" } else { " May be left out." };
            writeln!(f, "Body: {}{needed} {}.\n", text(&body["description"]), media_types(&body["content"]))?;
        }
        let forms: Vec<(&String, &Value)> = body["content"].as_object().into_iter().flatten().collect();
        let examples: Vec<_> = forms.into_iter().filter(|(_, form)| !form["example"].is_null()).collect();
        writeln!(f, "```sh")?;
        if examples.is_empty() {
            writeln!(f, "{}", self.curl(None))?;
        }
        for (media_type, form) in examples {
            writeln!(f, "{}", self.curl(Some((media_type, &form["example"]))))?;
        }
        writeln!(f, "```\n")
    }

    fn answers(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (status, answer) in self.responses().filter(|(_, answer)| answer["content"][ERROR].is_null()) {
            write!(f, "**{status}** {}", text(&answer["description"]))?;
            if answer["content"].is_object() {
                write!(f, " {}.", media_types(&answer["content"]))?;
            }
            for (name, header) in answer["headers"].as_object().into_iter().flatten() {
                write!(f, " `{name}`: {}", text(&header["description"]))?;
            }
            writeln!(f, "\n")?;
            for (_, form) in answer["content"].as_object().into_iter().flatten() {
                match &form["example"] {
                    Value::Null => {}
                    Value::String(lines) => writeln!(f, "```\n{}\n```\n", lines.trim_end())?,
                    json => writeln!(f, "```json\n{json:#}\n```\n")?,
                }
            }
        }
        Ok(())
    }

    fn problems(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "Problems:\n")?;
        for (status, answer) in self.responses().filter(|(_, answer)| !answer["content"][ERROR].is_null()) {
            writeln!(f, "- {status}: {}", text(&answer["description"]))?;
        }
        writeln!(f)
    }

    /// The example as curl has sent it for twenty years.
    fn curl(&self, body: Option<(&str, &Value)>) -> String {
        let mut line = "curl".to_owned();
        if self.method != "get" && (body.is_none() || self.method != "post") {
            let _ = write!(line, " -X {}", self.method.to_uppercase());
        }
        let _ = write!(line, " '{BASE}{}'", self.example_path());
        match body {
            Some((media_type, Value::String(lines))) => {
                let _ = write!(line, " \\\n  -H 'Content-Type: {media_type}' --data-binary '{lines}'");
            }
            Some((media_type, json)) => {
                let _ = write!(line, " \\\n  -H 'Content-Type: {media_type}' -d '{json}'");
            }
            None => {}
        }
        line
    }

    /// The path of the example, with its query.
    fn example_path(&self) -> String {
        let mut path = self.path.to_owned();
        let mut query = String::new();
        for parameter in self.parameters() {
            let (name, example) = (text(&parameter["name"]), &parameter["example"]);
            let values = example.as_array().map_or(std::slice::from_ref(example), Vec::as_slice);
            for value in values.iter().filter(|value| !value.is_null()) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                match text(&parameter["in"]) {
                    "path" => path = path.replace(&format!("{{{name}}}"), &value),
                    "query" => {
                        let separator = if query.is_empty() { '?' } else { '&' };
                        let _ = write!(query, "{separator}{name}={}", utf8_percent_encode(&value, QUERY));
                    }
                    _ => {}
                }
            }
        }
        path + &query
    }

    fn parameters(&self) -> &[Value] {
        self.said["parameters"].as_array().map_or(&[], Vec::as_slice)
    }

    fn responses(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.said["responses"].as_object().into_iter().flatten()
    }

    fn scope(&self) -> Option<&str> {
        self.said["security"][0]["token"][0].as_str()
    }

    fn name(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }
}

fn types(f: &mut Formatter<'_>, schemas: &Value) -> fmt::Result {
    writeln!(f, "## Types\n")?;
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        writeln!(f, "### {name}\n\n{}\n", text(&schema["description"]))?;
        if let Some(values) = schema["enum"].as_array().filter(|_| name != "ProblemCode") {
            let values: Vec<String> = values.iter().map(|value| format!("`{}`", text(value))).collect();
            writeln!(f, "One of {}.\n", values.join(", "))?;
        }
        if let Some(example) = schema["examples"][0].as_str() {
            writeln!(f, "As in `{example}`.\n")?;
        }
        for part in std::iter::once(schema).chain(schema["allOf"].as_array().into_iter().flatten()) {
            if part["$ref"].is_string() {
                writeln!(f, "With the fields of {}.\n", kind(part))?;
            }
            if let Some(fields) = part["properties"].as_object() {
                self::fields(f, fields, &part["required"])?;
            }
        }
    }
    Ok(())
}

fn fields(f: &mut Formatter<'_>, fields: &Map<String, Value>, required: &Value) -> fmt::Result {
    writeln!(f, "| Field | Type | |\n|---|---|---|")?;
    for (name, schema) in fields {
        let is_required = required.as_array().is_some_and(|names| names.iter().any(|needed| needed == name));
        let presence = if is_required { "" } else { " May be missing." };
        // Of what may be `null`, the other choice is described.
        let described =
            [&schema["description"], &schema["oneOf"][0]["description"], &schema["oneOf"][1]["description"]];
        let about = described.into_iter().find_map(Value::as_str).unwrap_or_default().replace('\n', " ");
        writeln!(f, "| `{name}` | {} | {about}{presence} |", kind(schema))?;
    }
    writeln!(f)
}

/// What a schema is, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("[{name}](#{})", slug(name));
    }
    let several = ["oneOf", "anyOf", "allOf"].into_iter().find_map(|of| schema[of].as_array());
    if let Some(several) = several {
        let kinds: Vec<String> = several.iter().map(kind).collect();
        return kinds.join(" or ");
    }
    match &schema["type"] {
        Value::Array(types) => {
            let types: Vec<&str> = types.iter().map(text).collect();
            types.join(" or ")
        }
        Value::String(array) if array == "array" => format!("array of {}", kind(&schema["items"])),
        Value::String(object) if object == "object" && schema["additionalProperties"].is_object() => {
            format!("map of {}", kind(&schema["additionalProperties"]))
        }
        Value::String(one) => one.clone(),
        _ => "any".to_owned(),
    }
}

fn media_types(content: &Value) -> String {
    let all = content.as_object().into_iter().flatten();
    let all = all.map(|(media_type, form)| match &form["schema"] {
        Value::Null => format!("`{media_type}`"),
        schema => format!("`{media_type}` ({})", kind(schema)),
    });
    all.collect::<Vec<_>>().join(" or ")
}

/// The anchor of a heading, as GitHub makes it.
pub(super) fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
