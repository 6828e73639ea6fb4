use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::eventually;
use crate::program::{delayline, lines_of, write};
use crate::service::{Service, bind};

async fn ran(words: &[&str]) -> Output {
    delayline(None, words).output().await.unwrap()
}

async fn said(words: &[&str]) -> String {
    let output = ran(words).await;
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

async fn fails(words: &[&str], says: &str) {
    let output = ran(words).await;
    assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(says), "{words:?}: {says:?} is not in {said}");
}

/// A service that has recorded the life of a job, and of another's beginning.
async fn recorded(path: &str) {
    let service = Service::with(&["--flight-recorder", path]).await;
    service.publish("orders", "order:17").await;
    let lease = service.lease("orders").await;
    service.post(&format!("/v1/leases/{lease}/ack"), "").await;
    service.publish("orders", "order:18").await;
    service.stop().await;
}

#[tokio::test]
async fn what_a_service_recorded_is_replayed_and_tells_the_story_of_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve.recording").display().to_string();
    recorded(&path).await;
    let all = said(&["replay", &path]).await;
    assert!(all.starts_with("recorded by delayline "), "{all}");
    for part in [
        "opened: layout 1, 1 shard",
        "orders/order:18: accepted, due",
        "all is done, nothing more will happen",
    ] {
        assert!(all.contains(part), "{part:?} is not in {all}");
    }
    let story = said(&["trace", "order:17", &path]).await;
    let mut lines = story.lines();
    for part in [
        "orders/order:17: publish it, due at once",
        "-> orders/order:17: publishes it, due at once, as sequence",
        "orders/order:17: accepted, due",
        "-> orders/order:17: publish answered: accepted as order:17",
        "orders/order:17: granted attempt 1 of",
        "-> orders/order:17: handed out: run attempt 1 of",
        "orders/order:17: ack under fence",
        "-> orders/order:17: sends ack under fence",
        "orders/order:17: ack done",
    ] {
        assert!(lines.any(|line| line.contains(part)), "{part:?} does not come in its place in {story}");
    }
    assert!(!story.contains("order:18"), "{story}");
    assert_eq!(said(&["replay", &path, "--job", "order:17"]).await, story);
    assert!(said(&["trace", "order:17", &path, "--queue", "orders"]).await.contains("granted"));
    let steps = lines_of(said(&["trace", "order:17", &path, "--json"]).await.as_bytes());
    let heard = |step: &Value| step["heard"][0]["id"] == json!("order:17");
    assert!(steps.iter().any(heard), "{steps:?}");
}

#[tokio::test]
async fn a_file_that_is_no_recording_or_is_cut_off_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve.recording").display().to_string();
    recorded(&path).await;
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    fails(&["replay", &path], "is cut off").await;
    let (half, rest) = whole.split_at(whole.len() / 2);
    std::fs::write(&path, [half, &vec![0xff; rest.len()]].concat()).unwrap();
    fails(&["replay", &path], "the recording is damaged").await;
    std::fs::write(&path, &whole).unwrap();
    fails(&["trace", "nobody:1", &path], "nothing in the recording is about a job nobody:1").await;
    let other = write(folder.path(), "jobs.ndjson", "{}");
    fails(&["replay", &other], "this is no recording of delayline").await;
    assert_eq!(ran(&["replay", "/nonexistent"]).await.status.code(), Some(2));
}

#[cfg(unix)]
#[tokio::test]
async fn a_service_saves_what_it_recorded_when_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve.recording");
    let service = Service::with(&["--flight-recorder", &path.display().to_string()]).await;
    service.publish("orders", "order:17").await;
    let id = std::process::id().to_string();
    assert!(tokio::process::Command::new("kill").args(["-USR1", &id]).status().await.unwrap().success());
    eventually("it is saved", async || has(&path, "order:17").then_some(())).await;
    service.stop().await;
    let service = Service::with(&["--flight-recorder", &path.display().to_string()]).await;
    assert!(has(&folder.path().join("serve.recording.1"), "order:17") && !has(&path, "order:17"));
    service.stop().await;
}

fn has(path: &Path, text: &str) -> bool {
    let saved = std::fs::read(path).unwrap_or_default();
    saved.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn a_recorder_that_cannot_be_is_refused() {
    for (words, says) in [
        (["--flight-recorder", "/nonexistent/x"].as_slice(), "cannot write into /nonexistent/x"),
        (&["--flight-recorder", "/nonexistent/x", "--flight-recorder-size", "1KiB"], "must be 64KiB to 1GiB"),
    ] {
        let Err(failure) = bind(words).await else { panic!("{words:?} is accepted") };
        assert!(failure.to_string().contains(says), "{failure}");
    }
}
