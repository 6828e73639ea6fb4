use std::fmt::Write;

use crate::Exports;

const DURABLE: &str = include_str!("entry.js");

/// The module that Cloudflare loads first.
pub(crate) fn entry(exports: &Exports) -> String {
    let head = if exports.classes.is_empty() { "import * as app from \"./index.js\";\n" } else { DURABLE };
    let mut text = format!("{head}\nexport default {{");
    for (number, handler) in exports.handlers.iter().enumerate() {
        let _ = write!(text, "{} {handler}: app.{handler}", if number == 0 { "" } else { "," });
    }
    text.push_str(" };\n");
    for class in &exports.classes {
        let _ = writeln!(text, "export const {class} = durable(app.{class});");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(handlers: &[&str], classes: &[&str]) -> String {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        entry(&Exports { handlers: texts(handlers), classes: texts(classes) })
    }

    #[test]
    fn only_what_the_glue_has_is_exported() {
        assert_eq!(
            of(&["fetch", "scheduled"], &[]),
            "import * as app from \"./index.js\";\n\nexport default { fetch: app.fetch, scheduled: app.scheduled };\n"
        );
    }

    #[test]
    fn objects_are_wrapped() {
        let text = of(&["fetch"], &["Ticker"]);
        assert!(
            text.ends_with(
                "export default { fetch: app.fetch };\nexport const Ticker = durable(app.Ticker);\n"
            )
        );
    }
}
