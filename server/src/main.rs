//! The delayline service and command line.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: delayline::Allocator = delayline::Allocator;

fn main() -> ExitCode {
    delayline::main()
}
