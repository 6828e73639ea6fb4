//! The bench measures what it says, with few jobs: each runs, and what it counts is right.

use std::fs;
use std::process::Command;
use std::time::Duration;

use delayline_tests::bench::{
    Bench, Bursts, Clients, Idle, Life, Limit, Options, Pace, Pending, Queues, Report, Startup, draw,
};

/// One round that counts, however loud.
fn run(bench: impl Into<Bench>, jobs: usize) -> Report {
    let options =
        Options { rounds: 1, most_rounds: 1, quiet: f64::INFINITY, jobs, warms_up: false, server: None };
    bench.into().run(&options)
}

fn value(report: &Report, case: &str, figure: &str) -> f64 {
    let found = report.rows.iter().find(|row| row.case == case && row.figure == figure && row.of == "this");
    found.unwrap_or_else(|| panic!("{case}, {figure}:\n{report}")).value.median
}

#[test]
fn a_burst_is_counted_from_the_due_time_to_the_last_acknowledgement() {
    let report = run(Queues { counts: vec![1, 3] }, 300);
    for case in ["1 queue", "3 queues"] {
        let calls = value(&report, case, "calls a job");
        assert!((0.1..30.0).contains(&calls), "a batch of 100 takes some 20 calls:\n{report}");
        assert!((10.0..1e6).contains(&value(&report, case, "jobs/s")), "{report}");
    }
    let many = report.rows.iter().find(|row| row.case == "3 queues" && row.figure == "calls a job");
    let ratio = many.and_then(|row| row.ratio.as_ref()).expect("a ratio");
    let expected = value(&report, "3 queues", "calls a job") / value(&report, "1 queue", "calls a job");
    assert_eq!(ratio.to, "1 queue");
    assert!((ratio.value.median - expected).abs() < 1e-9, "{ratio:?} and not {expected}");
}

#[test]
fn publishing_in_batches_takes_fewer_calls_than_one_by_one() {
    let report = run(Bursts::new(&[]), 2_000);
    let calls = |case: &str| value(&report, case, "calls a job");
    assert!(calls("one publish_all") < 0.5, "{report}");
    assert!(calls("four publish_all") <= calls("64 tasks, one by one"), "{report}");
}

#[test]
fn lives_by_bare_commands_take_twelve_calls() {
    let report = run(Limit { batches: vec![1, 10] }, 100);
    for (case, calls) in
        [("lives, 1 at a time", 12.0), ("lives, 10 at a time", 1.2), ("PING, 10 at a time", 1.0)]
    {
        assert!((value(&report, case, "calls a job") - calls).abs() < 1e-9, "{case}:\n{report}");
    }
    let report = run(Life::new(vec![10], None), 100);
    let bare = report.rows.iter().find(|row| row.of == "bare commands" && row.figure == "calls a job");
    let (bare, scripts) = (bare.expect("a row").value.median, value(&report, "batches of 10", "calls a job"));
    assert!((bare - 1.2).abs() < 1e-9 && scripts > bare, "{report}");
}

#[test]
fn what_is_paced_is_late_by_something() {
    let report = run(Pace { rates: vec![50, 100] }, 40);
    for case in ["50 jobs/s", "100 jobs/s"] {
        let [p50, p99, max] =
            ["ms late, p50", "ms late, p99", "ms late, max"].map(|figure| value(&report, case, figure));
        assert!(0.0 < p50 && p50 <= p99 && p99 <= max, "{report}");
        assert!(value(&report, case, "calls a job") > 5.0, "a job at a time is no batch:\n{report}");
    }
    let [punctual, thrifty] =
        ["100 jobs/s", "100 jobs/s, thrifty"].map(|case| value(&report, case, "calls a job"));
    assert!(thrifty <= 1.1 * punctual, "{report}");
}

#[test]
fn one_job_among_clients_takes_a_life_of_calls() {
    let report = run(Clients { counts: vec![3] }, 2);
    for case in
        ["3 workers, due at once", "3 workers, due later", "3 takes, due at once", "3 takes, due later"]
    {
        let (calls, scripts) = (value(&report, case, "calls a job"), value(&report, case, "scripts a job"));
        assert!(scripts >= 3.0 && calls >= 20.0, "published, granted, acknowledged:\n{report}");
    }
}

#[test]
fn a_publisher_with_nothing_to_do_asks_nothing() {
    let idle = Idle { watched: Duration::from_secs(2), server: None };
    let report = run(idle, 100);
    assert!(value(&report, "a publisher", "scripts a minute") < 1.0, "{report}");
    assert!(value(&report, "a worker", "scripts a minute") < 600.0, "{report}");
}

#[test]
fn a_pending_job_takes_more_bytes_than_its_body() {
    let report = run(Pending::new(vec![2_000, 4_000], 500, None), 200);
    for case in ["2000 pending", "4000 pending"] {
        assert!((150.0..1_000.0).contains(&value(&report, case, "bytes a pending job")), "{report}");
    }
    assert!(value(&report, "500 due in one ms", "ms of a PING, max") > 0.0, "{report}");
}

#[test]
fn a_report_is_json_a_table_and_plots() {
    let report = run(Startup { serve: None }, 2);
    assert!(value(&report, "a client, on a new server", "ms to the first job, p50") > 0.0, "{report}");
    let json: serde_json::Value = serde_json::to_value(&report).expect("a report is JSON");
    assert_eq!(json["bench"], "startup");
    assert_eq!(json["rows"][0]["values"].as_array().map(Vec::len), Some(1), "{json}");
    let folder = std::env::temp_dir().join(format!("delayline-plots-{}", std::process::id()));
    let files = draw(&report, &folder).expect("plots");
    assert_eq!(files.len(), 2);
    for file in &files {
        let text = fs::read_to_string(file).expect("a plot");
        assert!(text.starts_with("<svg") && text.contains("a client, on a new server"), "{}", file.display());
    }
    fs::remove_dir_all(folder).expect("the plots go");
}

#[test]
fn two_programs_take_turns_and_are_compared() {
    let program = env!("CARGO_BIN_EXE_bench");
    let mut command = Command::new(program);
    command.args([
        "limit",
        "--batches",
        "10",
        "--jobs",
        "100",
        "--rounds",
        "2",
        "--most-rounds",
        "2",
        "--json",
    ]);
    let output = command.args(["--against", program]).output().expect("the bench");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let calls: Vec<_> = rows
        .iter()
        .filter(|row| row["case"] == "lives, 10 at a time" && row["figure"] == "calls a job")
        .collect();
    let of = |row: &&serde_json::Value| row["of"].as_str().map(str::to_owned);
    assert_eq!(calls.iter().filter_map(of).collect::<Vec<_>>(), ["this", "against"], "{report}");
    assert_eq!(calls[0]["ratio"]["to"], "against", "{report}");
    assert_eq!(calls[0]["ratio"]["value"]["median"], 1.0, "both make the same calls: {report}");
    assert_eq!(calls[0]["values"].as_array().map(Vec::len), Some(2), "{report}");
}
