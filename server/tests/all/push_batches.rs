use serde_json::{Value, json};

use crate::receiver::{ALLOW, Receiver, Reply};
use crate::service::Service;

async fn publish(service: &Service, queue: &str, count: usize) {
    let jobs: Vec<Value> = (0..count).map(|n| json!({ "id": format!("job-{n:03}"), "payload": n })).collect();
    let answer = service.post(&format!("/v1/queues/{queue}/batch"), json!(jobs).to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn jobs_come_together_and_each_has_its_own_verdict() {
    let receiver = Receiver::start(|_, request| {
        let items = request.json();
        let items = items.as_array().unwrap();
        let decide = |item: &Value| {
            let id = item["id"].as_str().unwrap();
            let is_first = item["attempt"] == 1;
            let verdict = match id {
                "job-001" => json!({ "verdict": "bury", "reason": "not wanted" }),
                "job-002" if is_first => json!({ "verdict": "nack", "delay": "50ms", "reason": "busy" }),
                "job-003" => json!({ "verdict": "snooze", "delay": "1h" }),
                _ => json!({ "verdict": "ack" }),
            };
            let mut verdict = verdict;
            verdict["id"] = id.into();
            verdict
        };
        Reply::json(&json!({ "results": items.iter().map(decide).collect::<Vec<Value>>() }))
    })
    .await;
    let service = Service::with(&ALLOW).await;
    publish(&service, "q", 250).await;
    service.pushes("q", json!({ "url": receiver.url(), "batch": 100 }), json!({})).await;
    service.counts("q", "acked", 248).await;
    assert_eq!((service.counted("q", "died").await, service.counted("q", "snoozed").await), (1, 1));
    let dead = service.dead("q", 1).await.remove(0);
    assert_eq!((&dead["id"], &dead["reason"]), (&json!("job-001"), &json!("not wanted")));
    let waiting = service.get("/v1/queues/q/jobs/job-003").await.json;
    assert_eq!((&waiting["state"], &waiting["attempt"]), (&json!("delayed"), &json!(0)));
    let requests = receiver.requests();
    let sizes: Vec<usize> = requests.iter().map(|request| request.json().as_array().unwrap().len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 251, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 100) && sizes.len() <= 8, "{sizes:?}");
    for (request, size) in requests.iter().zip(sizes) {
        assert_eq!(request.header("delayline-batch"), size.to_string());
        assert!(request.id().starts_with("batch_"));
    }
    service.stop().await;
}

#[tokio::test]
async fn a_status_alone_decides_of_all() {
    let receiver = Receiver::start(|before, _| match before {
        0 => Reply::status(503),
        1 => Reply::With(200, "", br#"{"results":[{"id":"#.to_vec()),
        _ => Reply::With(200, "", b"thank you".to_vec()),
    })
    .await;
    let service = Service::with(&ALLOW).await;
    publish(&service, "q", 10).await;
    service.pushes("q", json!({ "url": receiver.url(), "batch": 10 }), json!({ "backoff": "50ms" })).await;
    service.counts("q", "acked", 10).await;
    assert!(service.counted("q", "nacked").await >= 10);
    service.stop().await;
}
