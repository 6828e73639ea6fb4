use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::package::PLACE;

/// Why there is no package.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The module could not be built.
    #[error(transparent)]
    Module(#[from] delayline_bundle::Failure),
    /// A file could not be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The package.json that is to be filled in has no place for the version.
    #[error("{} does not have the version {PLACE}", .0.display())]
    Manifest(PathBuf),
}

impl Failure {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        let path = path.to_owned();
        move |why| Failure::File { path, why }
    }
}
