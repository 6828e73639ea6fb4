use std::io::{self, Write as _};

/// Says something past the capture of tests' output, so that every run tells how much it did and how fast.
pub fn report(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
