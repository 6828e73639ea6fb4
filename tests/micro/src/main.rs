//! Repeats one step of the core, for whoever counts the instructions: `micro "wheel insert" 2000`. Without arguments it lists
//! the steps, and how many of each are counted.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let cases = delayline_micro::all();
    match &words[..] {
        [] => cases.iter().for_each(|case| println!("{}\t{}", case.name, case.steps)),
        [name, steps] => {
            let case = cases.iter().find(|case| case.name == name);
            let (Some(case), Ok(steps)) = (case, steps.parse()) else {
                eprintln!("micro: there is no step {name:?}, or {steps:?} is no number");
                return ExitCode::from(2);
            };
            (case.run)(steps);
        }
        _ => {
            eprintln!("usage: micro [STEP TIMES]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
