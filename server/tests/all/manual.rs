use std::process::Stdio;

use clap::{Command, CommandFactory};
use delayline::Cli;
use serde_json::Value;

use crate::program::{DELAYLINE, clean, delayline};

#[tokio::test]
async fn every_shell_that_is_here_reads_its_completions() {
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let output = delayline(None, &["completions", shell]).output().await.unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("reschedule"), "{script}");
        let folder = tempfile::tempdir().unwrap();
        let path = crate::program::write(folder.path(), "completions", &script);
        match clean(shell).args([check, &path]).stderr(Stdio::inherit()).status().await {
            Ok(status) => assert!(status.success(), "{shell} cannot read it"),
            Err(error) => assert_ne!(shell, "bash", "{error}"),
        }
    }
    let output = delayline(None, &["completions", "zsh", "--json"]).output().await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["shell"], "zsh");
    let output = delayline(None, &["completions", "csh"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[tokio::test]
async fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = clean(DELAYLINE);
    let output = command.current_dir(folder.path()).args(["man", "--dir", "a/man1", "--json"]).output().await;
    let pages: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let names = names(&Cli::command(), "");
    assert_eq!(pages["pages"].as_array().unwrap().len(), names.len(), "{pages}");
    for name in names {
        let page = folder.path().join("a/man1").join(format!("{name}.1"));
        let page = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(".TH ") && page.contains("Examples:"), "{page}");
    }
    let main = delayline(None, &["man"]).output().await.unwrap();
    assert!(String::from_utf8(main.stdout).unwrap().contains(".TH delayline 1"));
    crate::program::write(folder.path(), "file", "");
    let mut command = clean(DELAYLINE);
    let output = command.current_dir(folder.path()).args(["man", "--dir", "file/x"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

fn names(command: &Command, before: &str) -> Vec<String> {
    let name = format!("{before}{}", command.get_name());
    let inner = command.get_subcommands().flat_map(|inner| names(inner, &format!("{name}-")));
    inner.chain([name.clone()]).collect()
}

#[tokio::test]
async fn colours_are_for_those_who_want_them() {
    for (words, variable, coloured) in [
        (&["--help"][..], None, false),
        (&["--help", "--color", "always"], None, true),
        (&["config", "show", "--color=always"], None, true),
        (&["config", "show", "--color", "auto"], None, false),
        (&["config", "show", "--color", "never"], Some(("CLICOLOR_FORCE", "1")), false),
        (&["config", "show"], Some(("CLICOLOR_FORCE", "1")), true),
        (&["config", "show"], Some(("NO_COLOR", "1")), false),
    ] {
        let mut command = delayline(None, words);
        command.envs(variable);
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout.contains(&b'\x1b'), coloured, "{words:?}: {output:?}");
    }
}

#[tokio::test]
async fn what_nobody_reads_is_no_failure() {
    let mut child = delayline(None, &["man"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
