use crate::Failure;

const HANDLERS: [&str; 3] = ["fetch", "scheduled", "queue"];

/// What of a worker's glue Cloudflare calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports {
    /// The events that are handled: `fetch`, `scheduled`, `queue`.
    pub handlers: Vec<String>,
    /// The classes of Durable Objects.
    pub classes: Vec<String>,
}

impl Exports {
    /// Reads them from the glue for [`Target::Worker`](crate::Target::Worker).
    pub fn read(glue: &str) -> Result<Exports, Failure> {
        for missing in ["export function __worker_init_state(", "export function __wbg_reset_state "] {
            if !glue.contains(missing) {
                return Err(Failure::Glue { missing });
            }
        }
        let is_exported = |name: &&str| {
            glue.contains(&format!("export function {name}(")) || glue.contains(&format!(" as {name} }}"))
        };
        let handlers = HANDLERS.into_iter().filter(is_exported);
        let handlers = handlers.map(str::to_string).collect();
        Ok(Exports { handlers, classes: durable_objects(glue).collect() })
    }
}

/// The names of the classes that answer requests; the crate `worker` exports others that do not.
pub(crate) fn durable_objects(glue: &str) -> impl Iterator<Item = String> {
    glue.split("\nexport class ").skip(1).filter_map(durable_object)
}

fn durable_object(class: &str) -> Option<String> {
    let (name, rest) = class.split_once(" {")?;
    let (body, _) = rest.split_once("\n}")?;
    body.contains("\n    fetch(").then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str =
        "\nexport function __wbg_reset_state () {\n}\nexport function __worker_init_state() {\n}\n";

    fn read(glue: &str) -> Exports {
        Exports::read(&format!("{SYSTEM}{glue}")).unwrap()
    }

    #[test]
    fn handlers_are_the_events_that_cloudflare_has() {
        let exports = read("export function scheduled(a, b) {\n}\nexport function fetcher() {\n}\n");
        assert_eq!(exports.handlers, ["scheduled"]);
        assert!(exports.classes.is_empty());
        let renamed = read("function fetch2() {\n}\nexport { fetch2 as fetch }\n");
        assert_eq!(renamed.handlers, ["fetch"]);
    }

    #[test]
    fn a_class_is_an_object_if_it_answers_requests() {
        let range = "export class Range {\n    free() {\n    }\n}\nfunction f() {\n    fetch(1);\n}\n";
        let ticker = "export class Ticker {\n    alarm() {\n    }\n    fetch(req) {\n    }\n}\n";
        assert_eq!(read(&format!("{range}{ticker}")).classes, ["Ticker"]);
    }

    #[test]
    fn glue_without_the_worker_crate_is_refused() {
        assert!(matches!(Exports::read("export function fetch() {\n}\n"), Err(Failure::Glue { .. })));
    }
}
