use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use clap::builder::StyledStr;
use clap::{ColorChoice, Command, CommandFactory};

use crate::cli::Cli;

/// What follows the help of the whole.
pub(crate) const TOP: &str = "\
Examples:
  delayline serve                                # in memory, on 127.0.0.1:4747
  delayline serve --redis redis://127.0.0.1/     # on a Redis, which keeps the jobs
  delayline publish welcome '{\"to\":\"ann\"}' --delay 5s
  delayline consume welcome --exec ./send.sh
  delayline stats welcome
  delayline doctor

Where the Redis is, --redis says, or DELAYLINE_REDIS_URL, or `redis` in a file of settings: see
`delayline config show`.

Exit codes: 0 done, 1 refused, failed or not found, 2 wrong usage, 3 Redis did not answer and trying again
may help, 130 told to stop before it was done.";

/// How good news is shown.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// How a warning is shown.
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
/// How bad news is shown.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

const HEADING: Style = Style::new().bold().underline();
const NAME: Style = Style::new().bold();

const GROUPS: [(&str, &[&str]); 4] = [
    ("Jobs", &["publish", "consume", "job", "list", "cancel", "reschedule", "edit", "release", "dead"]),
    ("Queues", &["queues", "stats", "config", "pause", "resume", "destroy"]),
    (
        "Operation",
        &["serve", "push", "pump", "token", "namespace", "rest", "doctor", "import", "replay", "trace"],
    ),
    ("This command line", &["completions", "man"]),
];

/// The whole command line, with its commands in groups.
pub(crate) fn command(color: ColorChoice) -> Command {
    let command = Cli::command();
    let help = grouped(&command);
    command.color(color).help_template(help)
}

fn grouped(command: &Command) -> StyledStr {
    let mut help = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(help, "\n{HEADING}{heading}:{HEADING:#}");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(help, "  {NAME}{:<12}{NAME:#} {about}", command.get_name());
        }
    }
    let _ = write!(help, "\n{HEADING}Options:{HEADING:#}\n{{options}}{{after-help}}");
    StyledStr::from(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_a_group() {
        let command = Cli::command();
        let mut names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:\n  delayline "), "{}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        let command = Cli::command();
        command.clone().debug_assert();
        check(&command);
    }
}
