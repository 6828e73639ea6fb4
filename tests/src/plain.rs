//! The scripts that begin with a plain part, and what they are without it.

use delayline_lua::Script;

const BEGINNING: &str = "-- The common case of ";
const END: &str = "\nuntil true\n";

/// The scripts that have a plain part.
pub fn with_plain_part() -> impl Iterator<Item = &'static Script> {
    delayline_lua::all().into_iter().filter(|script| script.written().contains(BEGINNING))
}

/// A script whose plain part is another: what `change` makes of it.
///
/// # Panics
/// If the script has none.
pub fn with_other_plain_part(script: &Script, change: impl FnOnce(&str) -> String) -> String {
    let written = script.written();
    let begins = written.find(BEGINNING).expect("a plain part");
    let ends = begins + written[begins..].find(END).expect("the end of the plain part") + END.len();
    let (before, after) = (&written[..begins], &written[ends..]);
    [before, &change(&written[begins..ends]), after].concat()
}

/// A script without its plain part: all is decided by what stands behind it.
pub fn without_plain_part(script: &Script) -> String {
    with_other_plain_part(script, |_| String::new())
}
