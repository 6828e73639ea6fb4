use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::program::DELAYLINE;
use crate::program::{clean, delayline, write};

const GUIDE: &str = include_str!("../../../docs/production.md");

async fn show(folder: &Path, variables: &[(&str, &str)], words: &[&str]) -> Output {
    let mut command = clean(DELAYLINE);
    command.current_dir(folder).args(words).envs(variables.iter().copied());
    command.output().await.unwrap()
}

/// The value and source of a setting.
fn found(output: &Output, name: &str) -> (Option<String>, String) {
    assert!(output.status.success(), "{output:?}");
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = shown["settings"].as_array().unwrap();
    let setting = settings.iter().find(|setting| setting["name"] == name).unwrap();
    (setting["value"].as_str().map(String::from), setting["source"].as_str().unwrap().to_string())
}

#[tokio::test]
async fn a_flag_wins_over_the_environment_that_over_a_file_that_over_what_is_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let is = |value: &str, source: &str| (Some(value.to_string()), source.to_string());
    let words = ["config", "show", "--json"];
    let bare = show(folder.path(), &[], &words).await;
    assert_eq!(found(&bare, "redis"), (None, "default".to_string()));
    assert_eq!(found(&bare, "serve.listen"), is("127.0.0.1:4747", "default"));
    let file =
        "redis = 'redis://:hunter2@file/'\nprefix = 'file'\n[serve]\nlisten = '127.0.0.1:1'\nstrict = true\n";
    write(folder.path(), "delayline.toml", file);
    let output = show(folder.path(), &[], &words).await;
    assert_eq!(found(&output, "redis"), is("redis://:***@file/", "file"));
    assert_eq!(found(&output, "serve.listen"), is("127.0.0.1:1", "file"));
    assert_eq!(found(&output, "serve.strict"), is("true", "file"));
    assert_eq!(found(&output, "serve.timeout"), is("10s", "default"));
    let variables = [
        ("DELAYLINE_REDIS_URL", "redis://env/"),
        ("DELAYLINE_LISTEN", "127.0.0.1:2"),
        ("DELAYLINE_STRICT", "false"),
        ("DELAYLINE_PREFIX", ""),
    ];
    let output = show(folder.path(), &variables, &words).await;
    assert_eq!(found(&output, "redis"), is("redis://env/", "environment"));
    assert_eq!(found(&output, "prefix"), is("file", "file"));
    assert_eq!(found(&output, "serve.listen"), is("127.0.0.1:2", "environment"));
    assert_eq!(found(&output, "serve.strict"), is("false", "environment"));
    let output = show(folder.path(), &variables, &[&words[..], &["--redis", "redis://flag/"]].concat()).await;
    assert_eq!(found(&output, "redis"), is("redis://flag/", "flag"));
    let text = show(folder.path(), &variables, &["config", "show"]).await;
    let text = String::from_utf8(text.stdout).unwrap();
    let row = text.lines().find(|line| line.starts_with("prefix ")).unwrap();
    assert!(row.ends_with("delayline.toml"), "{text}");
}

/// As docs/production.md says them.
#[tokio::test]
async fn limits_that_nobody_set_are_what_the_guide_says() {
    let folder = tempfile::tempdir().unwrap();
    let shown = show(folder.path(), &[], &["config", "show", "--json"]).await;
    for (setting, value) in [
        ("serve.head_timeout", "10s"),
        ("serve.body_timeout", "10s"),
        ("serve.min_body_rate", "1KiB/s"),
        ("serve.idle_timeout", "75s"),
        ("serve.max_body_memory", "192MiB"),
        ("serve.max_memory", "256MiB"),
        ("serve.max_takes_per_client", "1024"),
    ] {
        assert_eq!(found(&shown, setting), (Some(value.to_string()), "default".to_string()), "{setting}");
        let row = GUIDE.lines().find(|line| line.starts_with(&format!("| `{}`", &setting["serve.".len()..])));
        let said = row.unwrap().replace([' ', ','], "");
        assert!(said.contains(value), "{setting}: {said}");
    }
}

#[tokio::test]
async fn a_file_is_the_named_one_or_here_or_at_home() {
    let (here, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at_home = home.path().display().to_string();
    let words = ["config", "show", "--json"];
    let prefix = |output: &Output| found(output, "prefix").0.unwrap();
    write(home.path(), "delayline/config.toml", "prefix = 'xdg'");
    write(home.path(), ".config/delayline/config.toml", "prefix = 'home'");
    let named = write(home.path(), "named.toml", "prefix = 'named'");
    let flagged = write(home.path(), "flagged.toml", "prefix = 'flagged'");
    let output = show(here.path(), &[("XDG_CONFIG_HOME", ""), ("HOME", &at_home)], &words).await;
    assert_eq!(prefix(&output), "home");
    let output = show(here.path(), &[("XDG_CONFIG_HOME", &at_home)], &words).await;
    assert_eq!(prefix(&output), "xdg");
    write(here.path(), "delayline.toml", "prefix = 'here'");
    let output = show(here.path(), &[("XDG_CONFIG_HOME", &at_home)], &words).await;
    assert_eq!(prefix(&output), "here");
    let variable = [("DELAYLINE_CONFIG", named.as_str())];
    assert_eq!(prefix(&show(here.path(), &variable, &words).await), "named");
    let output = show(here.path(), &variable, &[&words[..], &["--config", &flagged]].concat()).await;
    assert_eq!(prefix(&output), "flagged");
}

#[tokio::test]
async fn a_file_that_is_wrong_says_where() {
    let folder = tempfile::tempdir().unwrap();
    for (text, says) in [
        (
            "\nredsi = 'redis://:hunter2@h/'",
            "line 2: unknown field `redsi`, expected one of `redis`, `prefix`",
        ),
        ("[serve]\ntimeout = '5'", "line 2: timeout: 5 in \"5\" has no unit: write 5s"),
        ("redis = 'redis://:hunter2@h/", "line 1: redis"),
    ] {
        write(folder.path(), "delayline.toml", text);
        for words in [&["queues"][..], &["serve", "--json"]] {
            let output = show(folder.path(), &[], words).await;
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.replace("\\\"", "\"").contains(says), "{said}");
            assert!(said.contains("delayline.toml") && !said.contains("hunter2"), "{said}");
        }
    }
    let output = delayline(None, &["queues", "--config", "/nonexistent/x.toml"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("cannot read /nonexistent/x.toml"),
        "{output:?}"
    );
}

#[tokio::test]
async fn the_service_heeds_a_file() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "delayline.toml", "[serve]\nlisten = '0.0.0.0:0'\n");
    let output = show(folder.path(), &[], &["serve"]).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("accept that with --insecure"), "{output:?}");
}

#[tokio::test]
async fn a_variable_that_is_no_setting_is_refused_and_the_nearest_named() {
    let folder = tempfile::tempdir().unwrap();
    for (variable, says) in [
        ("DELAYLINE_REDIS", "DELAYLINE_REDIS is no setting: is it DELAYLINE_REDIS_URL that you mean?"),
        ("DELAYLINE_REDIS_UR", "is it DELAYLINE_REDIS_URL that you mean?"),
        ("DELAYLINE_LISTENS", "is it DELAYLINE_LISTEN that you mean?"),
        ("DELAYLINE_XYZZY", "there are DELAYLINE_"),
    ] {
        for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["queues", "--json"], &["config", "show"]] {
            let set = [(variable, "redis://127.0.0.1:1/")];
            let ended = show(folder.path(), &set, words);
            let output = tokio::time::timeout(std::time::Duration::from_secs(20), ended).await;
            let output = output.unwrap_or_else(|_| panic!("{words:?} runs on with {variable}"));
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
            assert!(said.contains(says), "{words:?}: {said}");
        }
        let unset = show(folder.path(), &[(variable, "")], &["config", "show"]).await;
        assert!(unset.status.success(), "{unset:?}");
    }
    let theirs = [("DELAYLINE_PORT", "tcp://10.0.0.1:4747"), ("DELAYLINE_SERVICE_HOST", "10.0.0.1")];
    let output = show(folder.path(), &theirs, &["config", "show"]).await;
    assert!(output.status.success(), "{output:?}");
}
