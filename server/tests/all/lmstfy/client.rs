//! lmstfy's own client, in Go, as programs use it.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::outage::DURABLE;
use super::{Lmstfy, TOKEN};
use crate::program::{clean, lines_of};
use crate::redis_server::RedisServer;

/// The program of `tests/lmstfy-client`, built once; `None` where there is no Go, which the caller says.
async fn program() -> Option<&'static PathBuf> {
    static BUILT: OnceCell<Option<PathBuf>> = OnceCell::const_new();
    BUILT.get_or_init(build).await.as_ref()
}

async fn build() -> Option<PathBuf> {
    let version = Command::new("go").arg("version").output().await;
    if !version.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/lmstfy-client");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lmstfy-client");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir(source).kill_on_drop(true);
    let output = timeout(Duration::from_secs(600), build.output()).await.expect("it does not end").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// A command of the client against this service.
async fn client(lmstfy: &Lmstfy, test: &str) -> Option<Command> {
    let Some(program) = program().await else {
        let missing = "go is missing, so lmstfy's client is not tested: install Go 1.25 or later";
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
        // Past the capture of tests' output: tests/run reads it.
        let _ = writeln!(io::stderr(), "skipped lmstfy::client::{test}: {missing}");
        return None;
    };
    let (host, port) = lmstfy.address().rsplit_once(':').unwrap();
    let mut command = clean(program.to_str().unwrap());
    command.env("LMSTFY_HOST", host).env("LMSTFY_PORT", port).env("LMSTFY_TOKEN", TOKEN);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

async fn checks_out(lmstfy: &Lmstfy, test: &str) {
    let Some(mut command) = client(lmstfy, test).await else { return };
    let output = timeout(Duration::from_secs(120), command.arg("check").output());
    let output = output.await.expect("it does not end").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines_of(&output.stdout);
    let steps: Vec<&str> = lines.iter().map(|line| line["step"].as_str().unwrap()).collect();
    let expected = [
        "published",
        "delayed",
        "prioritized",
        "left",
        "batched",
        "peeked",
        "republished",
        "died",
        "refused",
        "refused",
    ];
    assert_eq!(steps, expected);
    assert_eq!(lines[8]["token"], "[401]invalid token");
    assert_eq!(lines[9]["ttl"], "[400]ttl is shorter than delay");
    assert_eq!(lines[9]["request_id"].as_str().unwrap().len(), 26);
}

#[tokio::test]
async fn the_client_of_lmstfy_finds_what_it_expects_in_memory() {
    let lmstfy = Lmstfy::start().await;
    checks_out(&lmstfy, "the_client_of_lmstfy_finds_what_it_expects_in_memory").await;
}

#[tokio::test]
async fn the_client_of_lmstfy_finds_what_it_expects_on_redis() {
    let redis = RedisServer::start(&[]).await;
    let lmstfy = Lmstfy::with(&["--redis", &redis.url()]).await;
    checks_out(&lmstfy, "the_client_of_lmstfy_finds_what_it_expects_on_redis").await;
}

#[tokio::test]
async fn the_client_of_lmstfy_loses_no_job_while_redis_restarts() {
    let mut redis = RedisServer::start(&DURABLE).await;
    let lmstfy = Lmstfy::with(&["--redis", &redis.url(), "--timeout", "2s"]).await;
    let test = "the_client_of_lmstfy_loses_no_job_while_redis_restarts";
    let Some(mut command) = client(&lmstfy, test).await else { return };
    let mut child = command.args(["steady", "200"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = String::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("\"number\":60,") || line.contains("\"number\":130,") {
                redis.restart(&DURABLE).await;
            }
            last = line;
        }
    };
    timeout(Duration::from_secs(180), reading).await.expect("it does not end");
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let done = &lines_of(last.as_bytes())[0];
    assert_eq!((&done["step"], &done["jobs"]), (&"done".into(), &200.into()));
    assert_eq!(lmstfy.sizes("steady").await[3], 0);
}
