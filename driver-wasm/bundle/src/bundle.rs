use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

use crate::entry::entry;
use crate::{Exports, Failure, Options, Size, Target, bind, compile};

const GLUE: &str = "index.js";
const SNIPPETS: &str = "snippets";

/// A worker as Cloudflare runs it.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Where the modules are.
    pub directory: PathBuf,
    /// All of them, the entry first.
    pub modules: Vec<Module>,
    /// What Cloudflare calls.
    pub exports: Exports,
}

/// A file of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its path in the bundle's directory, as others import it: `snippets/worker-0123/inline0.js`.
    pub name: String,
    /// How it is to be read.
    pub kind: Kind,
    /// How large it is.
    pub size: Size,
}

/// How a module is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As an ES module.
    Script,
    /// As WebAssembly.
    Wasm,
}

/// Builds the worker in `directory` and writes into `out`: `entry.mjs`, which is the main module, `index.js`,
/// `index_bg.wasm` and, in `snippets`, what crates bring as JavaScript.
pub fn bundle(directory: &Path, out: &Path, options: &Options) -> Result<Bundle, Failure> {
    let module = compile(directory, options)?;
    let snippets = out.join(SNIPPETS);
    if snippets.exists() {
        fs::remove_dir_all(&snippets).map_err(Failure::file("remove", &snippets))?;
    }
    bind(&module, "index", Target::Worker, options.dev, out)?;
    let glue = out.join(GLUE);
    let exports = Exports::read(&fs::read_to_string(&glue).map_err(Failure::file("read", &glue))?)?;
    if exports.handlers.is_empty() {
        return Err(Failure::NoHandler { directory: directory.to_owned() });
    }
    let main = out.join("entry.mjs");
    fs::write(&main, entry(&exports)).map_err(Failure::file("write", &main))?;
    Ok(Bundle { directory: out.to_owned(), modules: modules(out, &snippets)?, exports })
}

impl Bundle {
    /// How large all modules are.
    pub fn size(&self) -> Size {
        self.modules.iter().map(|module| module.size).sum()
    }
}

impl Display for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for module in &self.modules {
            writeln!(f, "{}  {}", module.size, module.name)?;
        }
        write!(f, "{}  in all", self.size())
    }
}

fn modules(out: &Path, snippets: &Path) -> Result<Vec<Module>, Failure> {
    let mut paths = vec![out.join("entry.mjs"), out.join(GLUE), out.join("index_bg.wasm")];
    if snippets.is_dir() {
        paths.extend(files(snippets)?);
    }
    paths.iter().map(|path| module(out, path)).collect()
}

fn module(out: &Path, path: &Path) -> Result<Module, Failure> {
    let bytes = fs::read(path).map_err(Failure::file("read", path))?;
    let names = path.strip_prefix(out).unwrap_or(path).iter().map(|name| name.to_string_lossy());
    let kind = if path.extension().is_some_and(|end| end == "wasm") { Kind::Wasm } else { Kind::Script };
    Ok(Module { name: names.collect::<Vec<_>>().join("/"), kind, size: Size::of(&bytes) })
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(Failure::file("read", directory))? {
        let path = entry.map_err(Failure::file("read", directory))?.path();
        if path.is_dir() { files.extend(self::files(&path)?) } else { files.push(path) }
    }
    files.sort();
    Ok(files)
}
