use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use crate::cli::Cli;
use crate::cli::print;
use crate::failure::Failure;

/// Prints what makes a shell complete commands and options: source it, or put it where the shell looks.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  delayline completions bash > delayline.bash
  delayline completions zsh > _delayline
  delayline completions fish > delayline.fish")]
pub struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, json: bool) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "delayline", &mut script);
        let script = String::from_utf8_lossy(&script);
        if json {
            return print::document(&json!({ "shell": self.shell.to_string(), "script": script }));
        }
        print::text(script)
    }
}
