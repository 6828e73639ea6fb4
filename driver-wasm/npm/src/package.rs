use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

use delayline_bundle::{Options, Size, Target, bind, compile};

use crate::Failure;

const NAME: &str = "delayline";
/// What stands for the version.
pub(crate) const PLACE: &str = "\"0.0.0\"";
/// What wasm-bindgen writes that only its own entry needs: the package has entries of its own.
const NEEDLESS: [&str; 2] = ["delayline.js", "delayline_bg.wasm.d.ts"];
/// The classes can be disposed of by `using`, and say so in their types.
const TYPES: &str = "/// <reference lib=\"esnext.disposable\" />\n";

/// A folder for `npm pack`.
#[derive(Clone, Debug)]
pub struct Package {
    /// Where it is.
    pub directory: PathBuf,
    /// How large its module is.
    pub module: Size,
    /// How large the code around it is.
    pub glue: Size,
}

/// Builds the package into `out`, which is emptied first. Cargo keeps what it compiled in `target`, or where the
/// environment says.
pub fn package(out: &Path, target: Option<PathBuf>) -> Result<Package, Failure> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let features = ["--no-default-features", "--features", "js"].map(String::from).to_vec();
    let options =
        Options { profile: Some("npm".into()), target_directory: target, features, ..Options::default() };
    let module = compile(&here.join(".."), &options)?;
    if out.exists() {
        fs::remove_dir_all(out).map_err(Failure::file(out))?;
    }
    fs::create_dir_all(out).map_err(Failure::file(out))?;
    bind(&module, NAME, Target::Bundler, false, out)?;
    write_types(out)?;
    for needless in NEEDLESS {
        let path = out.join(needless);
        fs::remove_file(&path).map_err(Failure::file(&path))?;
    }
    for file in ["README.md", "node.js", "start.js", "web.js", "workerd.js"] {
        copy(&here.join("files").join(file), &out.join(file))?;
    }
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&here.join("../..").join(license), &out.join(license))?;
    }
    write_manifest(&here.join("files/package.json"), &out.join("package.json"))?;
    let size = |name| read(&out.join(name)).map(|file| Size::of(&file));
    Ok(Package {
        directory: out.to_owned(),
        module: size("delayline_bg.wasm")?,
        glue: size("delayline_bg.js")?,
    })
}

impl Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Package { directory, module, glue } = self;
        write!(f, "{module}  delayline_bg.wasm\n{glue}  delayline_bg.js\n{}", directory.display())
    }
}

fn write_types(out: &Path) -> Result<(), Failure> {
    let (from, to) = (out.join("delayline.d.ts"), out.join("index.d.ts"));
    let types = [TYPES.as_bytes(), &read(&from)?].concat();
    fs::write(&to, types).map_err(Failure::file(&to))?;
    fs::remove_file(&from).map_err(Failure::file(&from))
}

/// The version is that of the crates.
fn write_manifest(from: &Path, to: &Path) -> Result<(), Failure> {
    let manifest = fs::read_to_string(from).map_err(Failure::file(from))?;
    if !manifest.contains(PLACE) {
        return Err(Failure::Manifest(from.to_owned()));
    }
    let filled = manifest.replace(PLACE, concat!("\"", env!("CARGO_PKG_VERSION"), "\""));
    fs::write(to, filled).map_err(Failure::file(to))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(Failure::file(path))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(drop).map_err(Failure::file(from))
}
