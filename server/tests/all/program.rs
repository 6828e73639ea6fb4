use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::redis_server::RedisServer;

/// The built program.
pub(crate) const DELAYLINE: &str = env!("CARGO_BIN_EXE_delayline");

/// A command that finds no settings but those of the test.
pub(crate) fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DELAYLINE_") {
            command.env_remove(name);
        }
    }
    command.env_remove("RUST_LOG").env_remove("NO_COLOR").env("XDG_CONFIG_HOME", "/nonexistent");
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// `delayline` with these words.
pub(crate) fn delayline(redis: Option<&RedisServer>, words: &[&str]) -> Command {
    let mut command = clean(DELAYLINE);
    command.args(words);
    if let Some(redis) = redis {
        command.env("DELAYLINE_REDIS_URL", redis.url());
    }
    command
}

pub(crate) async fn run(redis: &RedisServer, words: &[&str]) -> Output {
    let running = delayline(Some(redis), words).output();
    timeout(Duration::from_secs(60), running)
        .await
        .unwrap_or_else(|_| panic!("{words:?} does not end"))
        .unwrap()
}

/// Runs it with `input` on stdin.
pub(crate) async fn fed(redis: &RedisServer, words: &[&str], input: &[u8]) -> Output {
    let mut command = delayline(Some(redis), words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = async move {
        let _ = stdin.write_all(input).await;
    };
    tokio::join!(feed, ended(child)).1
}

/// What it did, once it has ended, which must be soon.
pub(crate) async fn ended(child: Child) -> Output {
    timeout(Duration::from_secs(60), child.wait_with_output()).await.expect("it does not end").unwrap()
}

/// What it prints, which must be all it does.
pub(crate) async fn said(redis: &RedisServer, words: &[&str]) -> String {
    let output = run(redis, words).await;
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) async fn run_json(redis: &RedisServer, words: &[&str]) -> Value {
    let output = run(redis, words).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The lines of JSON that it prints.
pub(crate) fn lines_of(bytes: &[u8]) -> Vec<Value> {
    let lines = str::from_utf8(bytes).unwrap().lines();
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Checks that it fails with this exit code, and says this.
pub(crate) async fn fails(redis: &RedisServer, words: &[&str], code: i32, says: &str) {
    let output = run(redis, words).await;
    assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(says), "{words:?}: {says:?} is not in {said}");
}

/// The lines of a text, and their words.
pub(crate) fn words_of(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

/// Sends it a signal.
pub(crate) async fn signal(which: &str, process: &Child) {
    let pid = process.id().unwrap().to_string();
    assert!(Command::new("kill").args([which, &pid]).status().await.unwrap().success());
}

/// Makes a dead letter of each id.
pub(crate) async fn bury(redis: &RedisServer, queue: &str, ids: &[&str]) {
    for id in ids {
        said(redis, &["publish", queue, "x", "--id", id, "--attempts", "1"]).await;
    }
    let count = ids.len().to_string();
    said(redis, &["consume", queue, "--count", &count, "--exec", "echo broken >&2; exit 1"]).await;
}

/// Writes a file into a folder.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}
