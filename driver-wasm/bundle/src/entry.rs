use std::fmt::Write;

use crate::Exports;

const ENTRY: &str = include_str!("entry.js");
const DURABLE: &str = include_str!("durable.js");

/// The module that Cloudflare loads first.
pub(crate) fn entry(exports: &Exports) -> String {
    let durable = if exports.classes.is_empty() { "" } else { DURABLE };
    let mut text = format!("{ENTRY}{durable}\nexport default {{\n");
    for handler in &exports.handlers {
        let _ = writeln!(text, "  {handler}: (...args) => run(() => app.{handler}(...args)),");
    }
    text.push_str("};\n");
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
        let text = of(&["fetch", "scheduled"], &[]);
        let (_, exported) = text.split_once("export default ").unwrap();
        assert_eq!(
            exported,
            "{\n  fetch: (...args) => run(() => app.fetch(...args)),\n  \
             scheduled: (...args) => run(() => app.scheduled(...args)),\n};\n"
        );
        assert!(!text.contains("durable"));
    }

    #[test]
    fn objects_are_wrapped() {
        let text = of(&["fetch"], &["Ticker"]);
        assert!(text.contains("function durable(Class)"));
        assert!(text.ends_with("};\nexport const Ticker = durable(app.Ticker);\n"));
    }
}
