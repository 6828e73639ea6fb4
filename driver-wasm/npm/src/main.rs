//! Builds the npm package into `driver-wasm/npm/pkg`, or the directory that is named.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use delayline_npm::package;

fn main() -> ExitCode {
    let named = std::env::args_os().nth(1).map(PathBuf::from);
    let out = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("pkg"));
    match package(&out, None) {
        Ok(package) => {
            println!("{package}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("delayline-npm: {why}");
            ExitCode::FAILURE
        }
    }
}
