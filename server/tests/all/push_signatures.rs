use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::{clean, delayline, write};
use crate::receiver::{ALLOW, Received, Receiver, Reply, to};
use crate::service::Service;

const SHARED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PRIVATE: &str = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const PUBLIC: &str = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const FILES: [&str; 3] = ["package.json", "package-lock.json", "check.mjs"];
/// What was installed last.
const INSTALLED: &str = "installed.json";

/// A folder with the reference library and the check, of the same versions as in the repository.
async fn installed() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webhooks");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("webhooks");
    std::fs::create_dir_all(&folder).unwrap();
    for file in FILES {
        std::fs::copy(source.join(file), folder.join(file)).unwrap_or_else(|why| panic!("{file}: {why}"));
    }
    let lock = std::fs::read(folder.join("package-lock.json")).unwrap();
    if std::fs::read(folder.join(INSTALLED)).ok().as_ref() != Some(&lock) {
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder).kill_on_drop(true);
        let output = timeout(Duration::from_secs(300), install.output()).await.expect("it ends").unwrap();
        assert!(output.status.success(), "{output:?}");
        std::fs::write(folder.join(INSTALLED), lock).unwrap();
    }
    folder
}

async fn is_there(program: &str) -> bool {
    clean(program).arg("--version").output().await.is_ok_and(|output| output.status.success())
}

/// Has the reference library and Node's own ed25519 look at a push.
async fn is_believed(folder: &Path, pushed: &Received) {
    let body = String::from_utf8(pushed.body.clone()).unwrap();
    let given = json!({ "secret": SHARED, "publicKey": PUBLIC, "headers": pushed.headers, "body": body });
    let mut check = clean("node");
    check.arg("check.mjs").current_dir(folder);
    check.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = check.spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).await.unwrap();
    let output = timeout(Duration::from_secs(60), child.wait_with_output()).await.expect("it ends").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn receivers_that_know_nothing_of_delayline_believe_its_pushes() {
    for program in ["node", "npm"] {
        if !is_there(program).await {
            let missing =
                format!("{program} is missing, so standardwebhooks is not asked: install Node 20 or later");
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
            // Past the capture of tests' output: tests/run reads it.
            let test = "push_signatures::receivers_that_know_nothing_of_delayline_believe_its_pushes";
            let _ = writeln!(io::stderr(), "skipped {test}: {missing}");
            return;
        }
    }
    let folder = installed().await;
    let keys = tempfile::tempdir().unwrap();
    let older = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let file = write(keys.path(), "keys", &format!("# the older goes soon\n{older}\n{SHARED}\n{PRIVATE}\n"));
    let receiver = Receiver::always(Reply::status(200)).await;
    let service = Service::with(&[&ALLOW[..], &["--push-secret-file", &file]].concat()).await;
    service.pushes("q", to(&receiver), json!({})).await;
    service.pushes("batched", json!({ "url": receiver.url(), "batch": 10 }), json!({})).await;
    service.publish("q", "order.17").await;
    service.publish("batched", "a").await;
    for pushed in receiver.has(2).await {
        let signatures: Vec<&str> =
            pushed.header("webhook-signature").split(' ').map(|one| one.split(',').next().unwrap()).collect();
        assert_eq!(signatures, ["v1", "v1", "v1a"]);
        is_believed(&folder, &pushed).await;
    }
    service.stop().await;
}

#[tokio::test]
async fn a_command_prints_the_public_key_and_no_other() {
    let keys = tempfile::tempdir().unwrap();
    let file = write(keys.path(), "keys", &format!("{SHARED}\n{PRIVATE}\n"));
    let words = ["push", "--public-keys", "--push-secret-file", &file];
    let output = delayline(None, &words).output().await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{PUBLIC}\n"));
    let none = write(keys.path(), "shared", SHARED);
    let words = ["push", "--public-keys", "--push-secret-file", &none];
    let output = delayline(None, &words).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no ed25519 key is given"), "{output:?}");
}
