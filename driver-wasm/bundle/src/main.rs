//! Builds a Rust worker into the modules that Cloudflare runs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use delayline_bundle::{Options, bundle};

/// Build a Rust worker into the modules that Cloudflare runs
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where the worker's Cargo.toml is
    #[arg(default_value = ".", value_name = "DIR")]
    directory: PathBuf,
    /// Where the modules are written; relative to DIR
    #[arg(long, default_value = "build", value_name = "DIR")]
    out: PathBuf,
    /// Build quickly, with the names of functions
    #[arg(long)]
    dev: bool,
    /// Features, for cargo
    #[arg(last = true, value_name = "FEATURES")]
    features: Vec<String>,
}

fn main() -> ExitCode {
    let Arguments { directory, out, dev, features } = Arguments::parse();
    let out = directory.join(out);
    match bundle(&directory, &out, &Options { dev, target_directory: None, features }) {
        Ok(bundle) => {
            println!("{bundle}\n{} is the main module", out.join("entry.mjs").display());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("delayline-bundle: {why}");
            ExitCode::FAILURE
        }
    }
}
