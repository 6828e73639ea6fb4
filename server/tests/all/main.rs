//! The service and the command line, as their users meet them.

mod bad_input;
mod batch;
mod certificates;
mod client_limits;
mod command_line;
mod cors;
#[cfg(target_os = "linux")]
mod crowd;
mod dead;
#[cfg(unix)]
mod deployment;
mod doctor;
mod doctor_deployment;
mod doctor_jobs;
mod doctor_queues;
mod edge;
mod edits;
#[cfg(unix)]
mod examples;
mod exposition;
mod forwarding;
mod health;
mod import_lmstfy;
mod import_redisson;
mod import_source;
mod jobs;
mod jobs_by_hand;
mod leases;
mod limits;
mod lmstfy;
mod log_lines;
mod manual;
mod metrics;
mod monitoring;
mod openapi;
mod outage;
mod program;
mod proxy;
mod publish;
mod publish_lines;
mod push;
mod push_batches;
mod push_callbacks;
mod push_circuit;
mod push_faults;
#[cfg(unix)]
mod push_process;
mod push_refusals;
mod push_secure;
mod push_signatures;
mod queues;
mod queues_by_hand;
mod raw;
mod receiver;
mod recording;
mod redis_server;
mod request_id;
mod rest;
mod rest_endpoint;
mod rest_events;
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
mod tls;
mod tls_files;
mod tokens;
mod trusted_proxy;
mod typos;
#[cfg(unix)]
mod unix;
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
