//! Strips the scripts of what only their readers need, and names each as Redis does: by its SHA-1. The compiler could do it,
//! with constant functions, and would take twenty seconds for what takes none here.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

macro_rules! scripts {
    ($($doc:literal $constant:ident $name:literal: $($part:literal)*;)*) => {
        /// Each script's file, and those of its parts.
        const SCRIPTS: &[(&str, &[&str])] = &[$(($name, &[$(concat!("lib/", $part)),*])),*];
    };
}

include!("src/table.rs");

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to write"));
    fs::create_dir_all(out.join("lib/plain"))?;
    for (name, parts) in SCRIPTS {
        let mut source = String::new();
        for file in parts.iter().chain([name]) {
            let path = Path::new(file).with_extension("lua");
            let text = fs::read_to_string(&path).map_err(|error| named(&path, &error))?;
            let code = code(&text);
            fs::write(out.join(file).with_extension("lua"), &code)?;
            source += &code;
        }
        let digest = const_sha1::sha1(source.as_bytes()).as_bytes();
        let sha1: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(out.join(name).with_extension("sha1"), sha1.concat())?;
    }
    Ok(())
}

/// An error that says which file it is about.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Lua without comments that have lines of their own, empty lines and indentation.
fn code(text: &str) -> String {
    assert!(text.ends_with('\n'), "the last line has no end");
    let lines = text.lines().map(|line| line.trim_start_matches(' '));
    lines.filter(|line| !line.is_empty() && !line.starts_with("--")).flat_map(|line| [line, "\n"]).collect()
}
