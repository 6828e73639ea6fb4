//! The service as users run it, built with the tests so that they never meet a stale one.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: delayline::Allocator = delayline::Allocator;

fn main() -> ExitCode {
    delayline::main()
}
