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
    /// The profile, if it is neither `dev` nor `release`.
    pub profile: Option<String>,
    /// Where cargo keeps what it compiled; as the environment says if `None`.
    pub target_directory: Option<PathBuf>,
    /// Features, for cargo: `["--no-default-features", "--features", "js"]`.
    pub features: Vec<String>,
}

/// Compiles the library of the crate in `directory` to WebAssembly, and answers where that is. Cargo writes to stderr.
pub fn compile(directory: &Path, options: &Options) -> Result<PathBuf, Failure> {
    let manifest = directory.join("Cargo.toml");
    let manifest = manifest.canonicalize().map_err(Failure::file("read", &manifest))?;
    look_for_target(directory)?;
    let metadata = metadata(&manifest, options)?;
    check_bindgen(&manifest, &metadata)?;
    let package = metadata.root_package();
    let package = package.ok_or_else(|| Failure::Manifest {
        manifest: manifest.clone(),
        why: "it is a workspace, not a crate".to_string(),
    })?;
    build(directory, package, options)
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

fn metadata(manifest: &Path, options: &Options) -> Result<Metadata, Failure> {
    let mut command = MetadataCommand::new();
    command.manifest_path(manifest).other_options(["--filter-platform".to_string(), TARGET.to_string()]);
    if options.features.iter().any(|argument| argument == "--no-default-features") {
        command.features(CargoOpt::NoDefaultFeatures);
    }
    let failed = |why: cargo_metadata::Error| Failure::Manifest {
        manifest: manifest.to_owned(),
        why: why.to_string().trim().to_string(),
    };
    command.exec().map_err(failed)
}

fn check_bindgen(manifest: &Path, metadata: &Metadata) -> Result<(), Failure> {
    let mut found = metadata.packages.iter().filter(|package| package.name == "wasm-bindgen");
    let manifest = manifest.to_owned();
    let Some(bindgen) = found.next() else { return Err(Failure::NoBindgen { manifest }) };
    let found = bindgen.version.to_string();
    if found == VERSION { Ok(()) } else { Err(Failure::OtherBindgen { manifest, found }) }
}

fn build(directory: &Path, package: &Package, options: &Options) -> Result<PathBuf, Failure> {
    let cargo = cargo();
    let mut command = Command::new(&cargo);
    command.args(["build", "--lib", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    command.arg("--manifest-path").arg(&package.manifest_path);
    match &options.profile {
        Some(profile) => drop(command.args(["--profile", profile])),
        None if options.dev => {}
        None => drop(command.arg("--release")),
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
