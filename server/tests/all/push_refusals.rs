use serde_json::{Value, json};

use crate::receiver::{ALLOW, Receiver, Reply};
use crate::service::{Service, text};

/// The reason for which the only job of a queue died that is pushed so, with this `push-url` of its own if there is one.
async fn reason(service: &Service, queue: &str, push: Value, own: Option<&str>) -> String {
    service.pushes(queue, push, json!({})).await;
    let headers = own.map_or(json!({}), |url| json!({ "push-url": url }));
    let job = json!([{ "id": "a", "payload": 1, "headers": headers }]);
    let answer = service.post(&format!("/v1/queues/{queue}/batch"), job.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let dead = service.dead(queue, 1).await.remove(0);
    assert_eq!(dead["attempt"], 1);
    text(&dead["reason"])
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_by_whatever_name() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let port = receiver.address.port();
    let service = Service::start().await;
    for (n, host) in
        ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "2130706433", "0x7f.1", "0.0.0.0"]
            .into_iter()
            .enumerate()
    {
        let push = json!({ "url": format!("http://{host}:{port}/jobs") });
        let reason = reason(&service, &format!("q-{n}"), push, None).await;
        let says = reason.contains("is no public address: push elsewhere, or allow it by --push-allow");
        assert!(says, "{host}: {reason}");
    }
    assert_eq!(receiver.connections(), 0);
    service.stop().await;
}

#[tokio::test]
async fn what_is_allowed_is_reached_by_name_too_and_nothing_beside() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let port = receiver.address.port();
    let service = Service::with(&ALLOW).await;
    service.pushes("named", json!({ "url": format!("http://localhost:{port}/jobs") }), json!({})).await;
    service.publish("named", "a").await;
    service.counts("named", "acked", 1).await;
    for (n, host) in ["10.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "[::1]"].into_iter().enumerate() {
        let push = json!({ "url": format!("http://{host}:{port}/jobs") });
        let reason = reason(&service, &format!("q-{n}"), push, None).await;
        assert!(reason.contains("is no public address"), "{host}: {reason}");
    }
    service.stop().await;
}

#[tokio::test]
async fn a_job_names_its_own_url_only_where_it_may() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let service = Service::with(&ALLOW).await;
    let own = receiver.url();
    let off = reason(&service, "off", json!({ "url": own }), Some(&own)).await;
    assert!(off.contains("its header push-url is not allowed"), "{off}");
    let other = reason(&service, "other", json!({ "own_urls": ["https://a.example"] }), Some(&own)).await;
    assert!(other.contains("is not among the allowed URLs"), "{other}");
    let plain = reason(&service, "plain", json!({ "own_urls": ["*"] }), Some(&own)).await;
    assert!(plain.contains("is not among the allowed URLs"), "{plain}");
    let nowhere = reason(&service, "nowhere", json!({ "own_urls": ["*"] }), None).await;
    assert!(nowhere.contains("no URL is configured"), "{nowhere}");
    assert_eq!(receiver.connections(), 0);
    service.stop().await;
}
