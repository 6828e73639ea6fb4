use std::fmt::Display;
use std::io::Write;

use serde::Serialize;

use crate::failure::Failure;

/// Writes text to stdout, without colours where they are not wanted.
pub(crate) fn text(text: impl Display) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Writes a line of text to stdout.
pub(crate) fn line(line: impl Display) -> Result<(), Failure> {
    text(format_args!("{line}\n"))
}

/// Writes a document to stdout, as one line of JSON.
pub(crate) fn document(document: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(document).unwrap_or_default();
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)?;
    out.flush()?;
    Ok(())
}

/// Writes a document to stderr, as one line of JSON.
pub(crate) fn complaint(document: &impl Serialize) {
    let mut line = serde_json::to_vec(document).unwrap_or_default();
    line.push(b'\n');
    let _ = std::io::stderr().lock().write_all(&line);
}
