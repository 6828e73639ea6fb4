//! The examples: run as the programs that they are, and held to the tests that they contain.

#![allow(dead_code)] // what only their `main`s use

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use tokio::process::Command;

#[path = "../../examples/embed_in_axum.rs"]
mod embed_in_axum;
#[path = "../../examples/notification_ladder.rs"]
mod notification_ladder;
#[path = "../../examples/poll_with_snooze.rs"]
mod poll_with_snooze;
#[path = "../../examples/reminder.rs"]
mod reminder;
#[path = "../../examples/unpaid_order.rs"]
mod unpaid_order;

const PATIENCE: Duration = Duration::from_secs(30);

/// The lines that an example prints on a store in memory.
async fn lines(example: &str) -> Vec<String> {
    let program = program(example);
    assert!(
        program.exists(),
        "{} is not there: cargo build -p delayline-tokio --examples",
        program.display()
    );
    let mut command = Command::new(program);
    let output = command.env_remove("DELAYLINE_REDIS_URL").kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE, output).await;
    let output = output.unwrap_or_else(|_| panic!("{example} did not end in {PATIENCE:?}")).unwrap();
    let Output { status, stdout, stderr } = output;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{example}: {status}\n{stdout}{stderr}");
    stdout.lines().map(str::to_owned).collect()
}

/// Cargo puts them beside the folder of this test's own executable.
fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    profile.join("examples").join(format!("{example}{}", std::env::consts::EXE_SUFFIX))
}

#[tokio::test]
async fn unpaid_order_closes_the_unpaid_one_alone() {
    assert_eq!(
        lines("unpaid_order").await,
        [
            "order 17: paid, its timeout is Cancelled",
            "order 18: not paid in time, closed",
            "order 17: still paid: true",
        ]
    );
}

#[tokio::test]
async fn notification_ladder_ends_with_a_delivery_and_a_dead_letter() {
    let lines = lines("notification_ladder").await;
    let calls = |order: &str| lines.iter().filter(|line| line.starts_with(order)).count();
    assert_eq!((calls("order 17, attempt"), calls("order 18, attempt")), (3, 10), "{lines:#?}");
    assert!(lines.contains(&"order 17, attempt 3: https://restarts.example/paid answers 204".to_owned()));
    let death = "order 18: Dead after 10 attempts: https://away.example/paid answers 503";
    assert_eq!(lines.last().map(String::as_str), Some(death));
}

#[tokio::test]
async fn reminder_moves_one_calls_one_off_and_rings() {
    assert_eq!(
        lines("reminder").await,
        [
            "dentist: moved: true",
            "lunch: called off: true",
            "standup: to ann@example.org: standup in five minutes",
            "dentist: to ann@example.org: dentist at ten",
        ]
    );
}

#[tokio::test]
async fn embed_in_axum_sends_the_mail_and_stops() {
    let lines = lines("embed_in_axum").await;
    assert!(lines[0].starts_with("listening on 127.0.0.1:"), "{lines:#?}");
    let mut rest = lines[1..].to_vec();
    rest.sort();
    assert_eq!(rest, ["HTTP/1.1 202 Accepted", "mail to ann@example.org: welcome!", "stopped"]);
}

#[tokio::test]
async fn poll_with_snooze_spends_attempts_on_failures_alone() {
    let lines = lines("poll_with_snooze").await;
    let sales: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("sales, attempt ")).collect();
    assert_eq!(
        sales,
        [
            "1: still running",
            "1: still running",
            "1: too many requests",
            "2: still running",
            "2: ready at https://files.example/sales.csv",
        ]
    );
    assert_eq!(lines.last().map(String::as_str), Some("customers: given up: no such table: custmers"));
}
