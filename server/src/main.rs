//! The delayline service and command line.

use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Runtime;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: delayline::Allocator = delayline::Allocator;

const PATIENCE: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(why) => {
            eprintln!("delayline: the operating system gave no threads: {why}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(delayline::run(std::env::args_os()));
    // What was started is killed as its task ends; a read from stdin that is under way cannot be ended.
    runtime.shutdown_timeout(PATIENCE);
    code
}
