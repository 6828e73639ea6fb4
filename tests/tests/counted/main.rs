//! Instructions are counted, by valgrind's callgrind, and held to what was recorded in `tests/counts.txt`. They are no times:
//! what else the machine does changes none of them.
#![allow(missing_docs)]

#[cfg(target_os = "linux")]
mod callgrind;
#[cfg(target_os = "linux")]
mod core;
#[cfg(target_os = "linux")]
mod counts;
#[cfg(target_os = "linux")]
mod redis;
#[cfg(target_os = "linux")]
mod scripts;

#[cfg(not(target_os = "linux"))]
#[test]
fn instructions_are_counted() {
    let _: Option<()> = delayline_tests::edge::missing("instructions are counted on Linux alone");
}
