use walrus::Module;
use walrus::passes::gc;

use crate::exports::durable_objects;

/// The glue without the classes that Cloudflare does not call and that nothing else in it names: the crate `worker` brings
/// some to every worker.
pub(crate) fn pruned(glue: &str) -> String {
    let called: Vec<String> = durable_objects(glue).collect();
    let classes = glue.lines().filter_map(class).filter(|class| called.iter().all(|called| called != class));
    classes.fold(glue.to_string(), |glue, class| {
        let rest = without(&glue, class);
        if names_it(&rest, class) { glue } else { rest }
    })
}

/// The class that a line begins.
fn class(line: &str) -> Option<&str> {
    line.strip_prefix("export ").unwrap_or(line).strip_prefix("class ")?.strip_suffix(" {")
}

/// Takes away from a module what its glue does not call.
pub(crate) fn prune(module: &mut Module, glue: &str) {
    let is_called = |name: &str| names_it(glue, &format!("wasm.{name}"));
    let unused = module.exports.iter().filter(|export| !is_called(&export.name));
    for id in unused.map(walrus::Export::id).collect::<Vec<_>>() {
        module.exports.delete(id);
    }
    gc::run(module);
}

/// The glue without the text of a class, its disposal and its finalization.
fn without(glue: &str, class: &str) -> String {
    let pieces = [
        (format!("\nexport class {class} {{\n"), "\n}\n"),
        (format!("\nclass {class} {{\n"), "\n}\n"),
        (format!("\nif (Symbol.dispose) {class}.prototype"), ";\n"),
        (format!("\nconst {class}Finalization = "), "\n});\n"),
    ];
    pieces.iter().fold(glue.to_string(), |glue, (begin, end)| match cut(&glue, begin, end) {
        Some((before, after)) => format!("{before}\n{after}"),
        None => glue,
    })
}

/// What stands before a piece of text, and what after it.
fn cut<'a>(text: &'a str, begin: &str, end: &str) -> Option<(&'a str, &'a str)> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some((before, after))
}

/// Whether a name stands in the text as a whole.
fn names_it(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut found = text.match_indices(name).filter_map(|(at, _)| text.get(at + name.len()..));
    found.any(|rest| !rest.starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, method: &str) -> String {
        format!(
            "\nexport class {name} {{\n    {method}() {{\n        wasm.{name}_{method}();\n    }}\n}}\n\
             if (Symbol.dispose) {name}.prototype[Symbol.dispose] = {name}.prototype.free;\n\
             const {name}Finalization = new FinalizationRegistry((ptr) => {{\n    wasm.{name}_free(ptr);\n}});\n"
        )
    }

    #[test]
    fn what_cloudflare_does_not_call_goes() {
        let glue =
            format!("\nlet wasm;\n{}{}\nwasm.start();\n", class("Range", "free"), class("Ticker", "fetch"));
        assert_eq!(pruned(&glue), format!("\nlet wasm;\n\n{}\nwasm.start();\n", class("Ticker", "fetch")));
    }

    #[test]
    fn what_the_glue_names_stays() {
        let glue =
            format!("{}\nfunction f(ptr) {{\n    return Range.__wrap(ptr);\n}}\n", class("Range", "free"));
        assert_eq!(pruned(&glue), glue);
        let longer = format!("{}\nRanges.free();\n", class("Range", "free"));
        assert_eq!(pruned(&longer), "\n\nRanges.free();\n");
    }

    #[test]
    fn a_module_keeps_what_its_glue_calls() {
        let mut module = Module::default();
        for name in ["range_free", "range_free_all", "start"] {
            let body =
                walrus::FunctionBuilder::new(&mut module.types, &[], &[]).finish(vec![], &mut module.funcs);
            module.exports.add(name, body);
        }
        prune(&mut module, "wasm.start();\nwasm.range_free_all(1);\n");
        let left: Vec<&str> = module.exports.iter().map(|export| export.name.as_str()).collect();
        assert_eq!(left, ["range_free_all", "start"]);
        assert_eq!(module.funcs.iter().count(), 2);
    }
}
