//! The example with a Durable Object: punctual by its alarm, and a producer's API that brings the alarm forward.

use std::time::Duration;

use axum::http::Request;
use delayline_tests::edge::{Answer, Fault, Outcome};
use delayline_tests::{measure, until};
use serde_json::Value;

use crate::site::{API_TOKEN, Site, Which, unix_ms};

const PATIENCE: Duration = Duration::from_secs(60);

fn asked(site: &Site, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {API_TOKEN}"))
        .header("content-type", "application/json")
        .body(body.to_owned())
        .expect("a request");
    let response = site.worker.ask(request);
    let status = response.status().as_u16();
    (status, serde_json::from_str(response.body()).unwrap_or(Value::Null))
}

#[test]
fn what_is_published_here_is_pushed_within_300_ms_of_its_due_time() {
    let Some(site) = Site::start(Which::DurableObject, &[]) else { return };
    for (delay_ms, id) in [(2_000, "a"), (1_000, "b")] {
        let path = format!("/v1/queues/orders/jobs?delay={delay_ms}ms&id={id}");
        let (status, published) = asked(&site, "POST", &path, r#"{"to":"ann"}"#);
        assert_eq!((status, &published["id"]), (201, &id.into()), "{published}");
    }
    let pushes = site.receiver.wait(2, PATIENCE);
    for (push, id) in pushes.iter().zip(["b", "a"]) {
        let said = |name: &str| push.headers[name].to_str().expect("text").to_owned();
        assert_eq!(said("webhook-id"), id);
        let due: jiff::Timestamp = said("delayline-due").parse().expect("a time");
        let due = u64::try_from(due.as_millisecond()).expect("after 1970");
        let late = push.arrived_ms.checked_sub(due).expect("never early");
        println!("{id} arrived {late} ms after it was due");
        assert!(late <= 300, "{id} is {late} ms late: {}", site.worker.log());
    }
    until("settled", PATIENCE, || (site.stats("orders").counters.acked == 2).then_some(()));
}

#[test]
fn the_alarm_is_set_again_whatever_fails() {
    let Some(site) = Site::start(Which::DurableObject, &[]) else { return };
    site.rest.fail(&[Fault::Pass, Fault::Pass]);
    let (status, _) = asked(&site, "POST", "/v1/queues/orders/jobs?delay=1s", "1");
    assert_eq!(status, 201);
    site.rest.fail(&vec![Fault::Status { status: 500 }; 3]);
    site.receiver.answer({
        let answered = std::sync::atomic::AtomicU32::new(0);
        move |_| {
            let first = answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            Answer { status: if first { 503 } else { 200 }, ..Answer::default() }
        }
    });
    let pushes = site.receiver.wait(2, PATIENCE);
    assert_eq!(pushes[1].headers["delayline-attempt"], "2", "{}", site.worker.log());
}

#[test]
fn cron_lets_it_see_what_was_published_elsewhere() {
    let Some(site) = Site::alone(Which::DurableObject) else { return };
    let mut before = 0;
    measure("how late a job arrives that cron let the Durable Object see", || {
        site.publish("orders", |queue| vec![queue.publish_bytes("native").delay(Duration::from_secs(2))]);
        let due = unix_ms() + 2_000;
        assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
        let pushes = site.receiver.wait(before + 1, PATIENCE);
        let late = pushes[before].arrived_ms.saturating_sub(due);
        before += 1;
        if late <= 300 { Ok(format!("{late} ms")) } else { Err(format!("{late} ms: {}", site.worker.log())) }
    });
}

#[test]
fn publishers_are_answered_as_the_service_answers() {
    let Some(site) = Site::start(Which::DurableObject, &[]) else { return };
    let ask = |method: &str, path: &str, body: &str| asked(&site, method, path, body);
    let (status, published) = ask("POST", "/v1/queues/orders/jobs?id=a&delay=1h", r#"{"to":"ann"}"#);
    assert_eq!((status, &published["id"]), (201, &"a".into()));
    let (status, duplicate) = ask("POST", "/v1/queues/orders/jobs?id=a&delay=1h", "{}");
    assert_eq!(
        (status, &duplicate["code"], &duplicate["job"]["payload"]["to"]),
        (409, &"duplicate".into(), &"ann".into())
    );
    let (status, batch) =
        ask("POST", "/v1/queues/orders/batch", r#"[{"payload":1,"delay":"2h"},{"payload":2,"dealy":"1s"}]"#);
    assert_eq!(status, 200, "{batch}");
    assert_eq!(
        (&batch["results"][0]["status"], &batch["results"][1]["code"]),
        (&"created".into(), &"bad_item".into())
    );
    let (status, job) = ask("GET", "/v1/queues/orders/jobs/a", "");
    assert_eq!((status, &job["state"], &job["payload"]["to"]), (200, &"delayed".into(), &"ann".into()));
    let (status, moved) = ask("PATCH", "/v1/queues/orders/jobs/a", r#"{"delay":"3h"}"#);
    assert_eq!((status, moved["due"].is_string()), (200, true), "{moved}");
    let (status, queue) = ask("GET", "/v1/queues/orders", "");
    assert_eq!((status, &queue["sizes"]["delayed"]), (200, &2.into()), "{queue}");
    let (status, cancelled) = ask("DELETE", "/v1/queues/orders/jobs/a", "");
    assert_eq!((status, &cancelled["status"]), (200, &"cancelled".into()));
    assert_eq!(ask("GET", "/v1/queues/orders/jobs/a", "").0, 404);
    assert_eq!(ask("POST", "/v1/queues/orders/jobs?dealy=1s", "1").1["code"], "unknown_option");
    assert_eq!(ask("POST", "/v1/queues/orders/jobs", &"x".repeat((1 << 20) + 1)).0, 413);
    assert_eq!(ask("GET", "/v1/take", "").0, 404);
    let anonymous = Request::get("/v1/queues/orders").body(String::new()).expect("a request");
    let refused = site.worker.ask(anonymous);
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["www-authenticate"]),
        (401, &"Bearer".parse().expect("a value"))
    );
}
