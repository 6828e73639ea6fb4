//! The delayline service and command line.

use std::process::ExitCode;

use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(why) => {
            eprintln!("delayline: the operating system gave no threads: {why}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(delayline::run(std::env::args_os()));
    // A read from stdin that is under way cannot be ended: nobody waits for it.
    runtime.shutdown_background();
    code
}
