//! The service and the command line, as their users meet them.

mod bad_input;
mod batch;
mod command_line;
#[cfg(target_os = "linux")]
mod crowd;
mod dead;
mod doctor;
mod doctor_deployment;
mod doctor_jobs;
mod doctor_queues;
mod edge;
#[cfg(unix)]
mod examples;
mod exposition;
mod forwarding;
mod health;
mod import;
mod jobs;
mod jobs_by_hand;
mod leases;
mod limits;
mod log_lines;
mod manual;
mod metrics;
mod outage;
mod program;
mod publish;
mod queues;
mod queues_by_hand;
mod raw;
mod recording;
mod redis_server;
mod rest;
mod rest_endpoint;
mod rest_faults;
mod rest_limits;
mod rest_outage;
#[cfg(unix)]
mod rest_program;
mod service;
mod settings;
mod shutdown;
#[cfg(unix)]
mod signals;
mod site;
#[cfg(target_os = "linux")]
mod sockets;
mod take;
#[cfg(unix)]
mod terminal;
mod typos;
mod upstash_client;
mod ward;

use std::time::{Duration, Instant};

/// Asks until there is an answer, for a minute at most.
async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "still not so after a minute: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
