use std::time::{Duration, Instant};

use crate::service::Service;

#[tokio::test]
async fn long_polls_end_and_nothing_new_is_taken() {
    let service = Service::start().await;
    let base = service.base.clone();
    let poll = service.request(reqwest::Method::POST, "/v1/take?queue=q&wait=5m").send();
    let poll = tokio::spawn(poll);
    service.get("/healthz").await;
    let begun = Instant::now();
    let served = service.begin_stop();
    assert!(matches!(poll.await.unwrap(), Ok(answer) if answer.status() == 204));
    served.await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(reqwest::get(format!("{base}/healthz")).await.is_err());
}
