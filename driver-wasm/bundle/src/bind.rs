use std::fs;
use std::path::Path;

use wasm_bindgen_cli_support::Bindgen;

use crate::Failure;
use crate::prune::{prune, pruned};

/// The version of wasm-bindgen that is linked in: crates must be compiled with the same.
pub const VERSION: &str = "0.2.130";

/// Who is to run the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Cloudflare's workers: the glue can start the module afresh after a panic.
    Worker,
    /// A browser without a bundler: the glue's default export fetches the module.
    Web,
    /// What a bundler such as Vite or webpack makes of it.
    Bundler,
    /// Node, as ES modules.
    Node,
}

/// Writes the module into `out` as `NAME_bg.wasm` with the glue `NAME.js`, and its types as `NAME.d.ts` for all but
/// workers. `dev` keeps the names of functions.
pub fn bind(module: &Path, name: &str, target: Target, dev: bool, out: &Path) -> Result<(), Failure> {
    let failed = |why| Failure::bind(module, format!("{why:#}"));
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name(name).typescript(target != Target::Worker);
    bindgen.remove_name_section(!dev).remove_producers_section(!dev);
    match target {
        Target::Worker => bindgen.module(true).map(|bindgen| {
            bindgen.reset_state_function(true).force_enable_abort_handler(true);
        }),
        Target::Web => bindgen.web(true).map(drop),
        Target::Bundler => bindgen.bundler(true).map(drop),
        Target::Node => bindgen.nodejs_module(true).map(drop),
    }
    .map_err(failed)?;
    let mut output = bindgen.generate_output().map_err(failed)?;
    output.emit(out).map_err(failed)?;
    if target != Target::Worker {
        return Ok(());
    }
    let glue = out.join(name).with_extension("js");
    let text = fs::read_to_string(&glue).map_err(Failure::file("read", &glue))?;
    let text = pruned(&mended(&text)?);
    prune(output.wasm_mut(), &text);
    output.emit(out).map_err(failed)?;
    fs::write(&glue, text).map_err(Failure::file("write", &glue))
}

/// Makes imports plain, which every workerd knows, and lets what belongs to a module that has panicked be stale at once.
/// As generated it is that only when the next module has been started, and the closure that is called first starts it,
/// to then call into it with what it had from the other.
fn mended(glue: &str) -> Result<String, Failure> {
    const STALE: &str = "!== __wbg_instance_id)";
    const PANICKED: &str = "__wbg_reinit_scheduled";
    if !glue.contains(STALE) || !glue.contains(PANICKED) {
        return Err(Failure::Glue { missing: "check for what is stale" });
    }
    let glue = glue.replace("import source ", "import ");
    Ok(glue.replace(STALE, &format!("!== __wbg_instance_id || {PANICKED})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_is_linked_in() {
        let pin = format!("wasm-bindgen-cli-support = \"={VERSION}\"");
        assert!(include_str!("../Cargo.toml").contains(&pin), "{pin}");
    }

    #[test]
    fn a_closure_of_a_module_that_has_panicked_is_stale() {
        let glue = "import source wasmModule from \"./index_bg.wasm\";\nlet __wbg_reinit_scheduled = false;\n\
                    if (state.instance !== __wbg_instance_id) {";
        let expected = "import wasmModule from \"./index_bg.wasm\";\nlet __wbg_reinit_scheduled = false;\n\
                        if (state.instance !== __wbg_instance_id || __wbg_reinit_scheduled) {";
        assert_eq!(mended(glue).unwrap(), expected);
    }

    #[test]
    fn glue_of_another_form_is_refused() {
        assert!(matches!(
            mended("import source wasmModule from \"./index_bg.wasm\";"),
            Err(Failure::Glue { .. })
        ));
    }
}
