use std::fmt::Display;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::VERSION;

/// Why nothing was built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// A program cannot be run.
    #[error("cannot run {program}: {why}. Install Rust from https://rustup.rs")]
    Run {
        /// Which.
        program: String,
        /// Why not.
        why: std::io::Error,
    },
    /// The compiler cannot build WebAssembly yet.
    #[error("the Rust used in {} cannot build for wasm32-unknown-unknown yet: run `rustup target add wasm32-unknown-unknown`", directory.display())]
    NoTarget {
        /// Where it was asked.
        directory: PathBuf,
    },
    /// Cargo does not say what the crate is.
    #[error("cargo does not understand {}: {why}", manifest.display())]
    Manifest {
        /// The crate's manifest.
        manifest: PathBuf,
        /// What cargo says.
        why: String,
    },
    /// The crate does not depend on wasm-bindgen, so that JavaScript could not call it.
    #[error("{} does not depend on wasm-bindgen: a worker needs the crate `worker`, other packages `wasm-bindgen = \"={VERSION}\"`", manifest.display())]
    NoBindgen {
        /// The crate's manifest.
        manifest: PathBuf,
    },
    /// The crate uses another wasm-bindgen, whose data cannot be read.
    #[error(
        "{} uses wasm-bindgen {found}, and this tool needs {VERSION}: run `cargo update -p wasm-bindgen --precise {VERSION}` \
         there, and depend on `wasm-bindgen = \"={VERSION}\"` to keep it",
        manifest.display()
    )]
    OtherBindgen {
        /// The crate's manifest.
        manifest: PathBuf,
        /// What it uses.
        found: String,
    },
    /// Cargo found errors, and has written them to stderr.
    #[error("{} does not compile: cargo says why above", directory.display())]
    Compile {
        /// The crate's directory.
        directory: PathBuf,
    },
    /// The crate compiles, but into no module.
    #[error("{} becomes no WebAssembly module: add `crate-type = [\"cdylib\"]` to its [lib]", manifest.display())]
    NoModule {
        /// The crate's manifest.
        manifest: PathBuf,
    },
    /// The glue could not be written.
    #[error("wasm-bindgen cannot bind {}: {why}", module.display())]
    Bind {
        /// The module.
        module: PathBuf,
        /// What wasm-bindgen says.
        why: String,
    },
    /// The glue is not of the form that is known.
    #[error(
        "the glue of wasm-bindgen {VERSION} has no {missing}, which a panic is survived with: please report it"
    )]
    Glue {
        /// What was looked for.
        missing: &'static str,
    },
    /// The crate is no worker.
    #[error(
        "{} handles no event: a worker has `#[event(fetch)]`, `#[event(scheduled)]` or `#[event(queue)]` of the crate `worker`",
        directory.display()
    )]
    NoHandler {
        /// The crate's directory.
        directory: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {why}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        why: std::io::Error,
    },
}

impl Failure {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
        move |why| Failure::File { what, path: path.to_owned(), why }
    }

    pub(crate) fn bind(module: &Path, why: impl Display) -> Failure {
        Failure::Bind { module: module.to_owned(), why: why.to_string() }
    }
}
