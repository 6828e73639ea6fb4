use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::program::clean;
use crate::redis_server::RedisServer;
use crate::rest_endpoint::{RestEndpoint, TOKEN};

const FILES: [&str; 3] = ["package.json", "package-lock.json", "check.test.mjs"];
/// What was installed last.
const INSTALLED: &str = "installed.json";

/// A folder with the client and the test, of the same versions as in the repository.
async fn installed() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/edge/upstash");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("upstash");
    std::fs::create_dir_all(&folder).unwrap();
    for file in FILES {
        std::fs::copy(source.join(file), folder.join(file)).unwrap_or_else(|why| panic!("{file}: {why}"));
    }
    let lock = std::fs::read(folder.join("package-lock.json")).unwrap();
    if std::fs::read(folder.join(INSTALLED)).ok().as_ref() != Some(&lock) {
        ran(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder)).await;
        std::fs::write(folder.join(INSTALLED), lock).unwrap();
    }
    folder
}

async fn ran(command: &mut Command) {
    let running = command.kill_on_drop(true).output();
    let output = timeout(Duration::from_secs(300), running).await.expect("it does not end").unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", said(&output.stdout), said(&output.stderr));
}

async fn is_there(program: &str) -> bool {
    clean(program).arg("--version").output().await.is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn the_client_of_upstash_finds_what_it_expects() {
    for program in ["node", "npm"] {
        if !is_there(program).await {
            let missing =
                format!("{program} is missing, so @upstash/redis is not tested: install Node 20 or later");
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
            // Past the capture of tests' output: tests/run reads it.
            let test = "upstash_client::the_client_of_upstash_finds_what_it_expects";
            let _ = writeln!(io::stderr(), "skipped {test}: {missing}");
            return;
        }
    }
    let folder = installed().await;
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--allow-admin"]).await;
    let mut tests = clean("node");
    tests.args(["--test", "check.test.mjs"]).current_dir(folder);
    tests.env("UPSTASH_REDIS_REST_URL", &rest.base).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
    ran(&mut tests).await;
}
