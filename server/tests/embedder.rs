//! A program that serves the queues itself, and has a recorder of metrics.

#[allow(dead_code)]
#[path = "all/exposition.rs"]
mod exposition;
#[allow(dead_code)]
#[path = "all/service.rs"]
mod service;

use self::exposition::Exposition;
use self::service::{Service, text};

#[tokio::test]
async fn a_recorder_that_is_there_stays_and_metrics_say_so() {
    assert!(metrics::set_global_recorder(metrics::NoopRecorder).is_ok());
    let service = Service::start().await;
    service.publish("q", "a").await;
    let text = text(&service.get("/metrics").await.json);
    assert!(text.starts_with("# This process has another recorder of metrics"), "{text}");
    let metrics = Exposition::read(&text);
    let queues = [
        "delayline_build_info",
        "delayline_queue_events_total",
        "delayline_queue_jobs",
        "delayline_queue_oldest_due_seconds",
        "delayline_queue_paused",
        "delayline_up",
    ];
    assert_eq!(metrics.families(), queues.into());
    assert!(metrics.value("delayline_queue_jobs", &[("queue", "q"), ("state", "ready")]) > 0.0);
}
