use std::env;
use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::{CargoOpt, Message, Metadata, MetadataCommand, Package};

use crate::{Failure, VERSION};

const TARGET: &str = "wasm32-unknown-unknown";

/// How a crate is compiled.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// With the profile `dev`, and with the names of functions kept: quick to build, and panics tell where they were.
    pub dev: bool,
    /// Where cargo keeps what it compiled; as the environment says if `None`.
    pub target_directory: Option<PathBuf>,
    /// Features, for cargo: `["--no-default-features", "--features", "js"]`.
    pub features: Vec<String>,
}

/// Compiles the library of the crate in `directory` to WebAssembly, and answers where that is. Cargo writes to stderr.
pub fn compile(directory: &Path, options: &Options) -> Result<PathBuf, Failure> {
    let manifest = directory.join("Cargo.toml");
    let manifest = manifest.canonicalize().map_err(Failure::file("read", &manifest))?;
    let metadata = metadata(&manifest)?;
    let package = metadata.root_package();
    let package = package.ok_or_else(|| Failure::Manifest {
        manifest: manifest.clone(),
        why: "it is a workspace, not a crate".to_string(),
    })?;
    check_bindgen(&manifest, &metadata)?;
    look_for_target(directory)?;
    build(directory, package, options)
}

fn metadata(manifest: &Path) -> Result<Metadata, Failure> {
    let mut command = MetadataCommand::new();
    command.manifest_path(manifest).features(CargoOpt::AllFeatures);
    command.other_options(["--filter-platform".to_string(), TARGET.to_string()]);
    command.exec().map_err(|why| {
        let why = match why {
            cargo_metadata::Error::CargoMetadata { stderr } => stderr.trim().to_string(),
            other => other.to_string(),
        };
        Failure::Manifest { manifest: manifest.to_owned(), why }
    })
}

fn check_bindgen(manifest: &Path, metadata: &Metadata) -> Result<(), Failure> {
    let mut found = metadata.packages.iter().filter(|package| package.name == "wasm-bindgen");
    let manifest = manifest.to_owned();
    let Some(bindgen) = found.next() else { return Err(Failure::NoBindgen { manifest }) };
    let found = bindgen.version.to_string();
    if found == VERSION { Ok(()) } else { Err(Failure::OtherBindgen { manifest, found }) }
}

fn look_for_target(directory: &Path) -> Result<(), Failure> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(&rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]).current_dir(directory);
    let output = command.output().map_err(|why| cannot_run(&rustc, why))?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let is_there = output.status.success() && libraries.is_dir();
    is_there.then_some(()).ok_or_else(|| Failure::NoTarget { directory: directory.to_owned() })
}

fn build(directory: &Path, package: &Package, options: &Options) -> Result<PathBuf, Failure> {
    let cargo = cargo();
    let mut command = Command::new(&cargo);
    command.args(["build", "--lib", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    command.arg("--manifest-path").arg(&package.manifest_path);
    if !options.dev {
        command.arg("--release");
    }
    if let Some(target) = &options.target_directory {
        command.arg("--target-dir").arg(target);
    }
    // What the crate `worker` is built with by its own tool.
    command.args(&options.features).current_dir(directory).env("WASM_BINDGEN_USE_JS_SYS", "1");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|why| cannot_run(&cargo, why))?;
    let module = child.stdout.take().and_then(|stdout| module(BufReader::new(stdout), package));
    let status = child.wait().map_err(|why| cannot_run(&cargo, why))?;
    if !status.success() {
        return Err(Failure::Compile { directory: directory.to_owned() });
    }
    module.ok_or_else(|| Failure::NoModule { manifest: package.manifest_path.clone().into() })
}

/// Where cargo says it put the module of this package: its dependencies may have modules too.
fn module(output: impl std::io::BufRead, package: &Package) -> Option<PathBuf> {
    let messages = Message::parse_stream(output).filter_map(Result::ok);
    let files = messages.filter_map(|message| match message {
        Message::CompilerArtifact(artifact) if artifact.package_id == package.id => Some(artifact.filenames),
        _ => None,
    });
    files.flatten().filter(|file| file.extension() == Some("wasm")).last().map(PathBuf::from)
}

fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn cannot_run(program: &OsString, why: std::io::Error) -> Failure {
    Failure::Run { program: program.to_string_lossy().into_owned(), why }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A crate in a workspace of its own, with this wasm-bindgen beside it if any.
    fn package(bindgen: Option<&str>) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        let dependency = if bindgen.is_some() { "wasm-bindgen = { path = \"bindgen\" }" } else { "" };
        write(directory.path(), "a", "0.1.0", &format!("[workspace]\n[dependencies]\n{dependency}\n"));
        if let Some(version) = bindgen {
            write(&directory.path().join("bindgen"), "wasm-bindgen", version, "");
        }
        directory
    }

    fn write(directory: &Path, name: &str, version: &str, rest: &str) {
        fs::create_dir_all(directory.join("src")).unwrap();
        fs::write(directory.join("src/lib.rs"), "").unwrap();
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\n{rest}");
        fs::write(directory.join("Cargo.toml"), manifest).unwrap();
    }

    fn refused(package: &TempDir) -> String {
        compile(package.path(), &Options::default()).unwrap_err().to_string()
    }

    #[test]
    fn another_wasm_bindgen_is_refused_with_the_remedy() {
        let said = refused(&package(Some("0.2.99")));
        assert!(said.contains("uses wasm-bindgen 0.2.99, and this tool needs 0.2.130"), "{said}");
        assert!(said.contains("cargo update -p wasm-bindgen --precise 0.2.130"), "{said}");
    }

    #[test]
    fn a_crate_without_wasm_bindgen_is_refused() {
        let said = refused(&package(None));
        assert!(said.contains("does not depend on wasm-bindgen"), "{said}");
    }

    #[test]
    fn a_manifest_that_cargo_does_not_understand_is_refused_with_its_words() {
        let package = package(None);
        fs::write(package.path().join("Cargo.toml"), "[package]\n").unwrap();
        let said = refused(&package);
        assert!(said.contains("failed to parse manifest"), "{said}");
    }
}
