use serde_json::json;

use super::Lmstfy;
use crate::eventually;

/// Jobs that are out of tries, in the order of their deaths.
async fn dead(lmstfy: &Lmstfy, queue: &str, terms: &str, count: u64) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(lmstfy.publish(&format!("/api/ns/{queue}?{terms}"), &n.to_string()).await);
    }
    loop {
        let reply = lmstfy.ask("GET", &format!("/api/ns/{queue}?ttr=1&timeout=1&count=100"), "").await;
        if reply.status == 404 && lmstfy.sizes(queue).await == [0, 0, 0, count] {
            return ids;
        }
    }
}

async fn deadletter(lmstfy: &Lmstfy, head: &str, size: u64) {
    let expected =
        format!(r#"{{"deadletter_head":"{head}","deadletter_size":{size},"namespace":"ns","queue":"q"}}"#);
    lmstfy.ask("GET", "/api/ns/q/deadletter", "").await.is_json(200, &expected);
    let expected = format!(r#"{{"namespace":"ns","queue":"q","size":{size}}}"#);
    lmstfy.ask_with("GET", "/api/ns/q/deadletter/size", &[], "").await.is_json(200, &expected);
}

#[tokio::test]
async fn dead_letters_are_seen_deleted_and_respawned_the_first_ones_first() {
    let lmstfy = Lmstfy::start().await;
    deadletter(&lmstfy, "", 0).await;
    let ids = dead(&lmstfy, "q", "tries=1", 5).await;
    deadletter(&lmstfy, &ids[0], 5).await;
    let path = "/api/ns/q/deadletter";
    for (method, query, error) in [
        ("PUT", "limit=0&ttl=x", "invalid limit"),
        ("PUT", "limit=x", "invalid limit"),
        ("PUT", "limit=9223372036854775808", "invalid limit"),
        ("PUT", "ttl=-1", "invalid ttl"),
        ("PUT", "ttl=x", "invalid ttl"),
        ("DELETE", "limit=0", "invalid limit"),
        ("DELETE", "limit=-1", "invalid limit"),
    ] {
        lmstfy.ask(method, &format!("{path}?{query}"), "").await.is_error(400, error);
    }
    lmstfy.ask("DELETE", path, "").await.is_empty(204);
    deadletter(&lmstfy, &ids[1], 4).await;
    lmstfy.ask("PUT", path, "").await.is_json(200, r#"{"count":1,"msg":"respawned"}"#);
    deadletter(&lmstfy, &ids[2], 3).await;
    lmstfy.ask("GET", "/api/ns/q", "").await.is_job(&format!(
        r#"{{"attributes":null,"data":"MQ==","elapsed_ms":ELAPSED,"job_id":"{}","msg":"new job","namespace":"ns","queue":"q","remain_tries":0,"ttl":86400}}"#,
        ids[1]
    ));
    lmstfy
        .ask("PUT", &format!("{path}?limit=2&ttl=0"), "")
        .await
        .is_json(200, r#"{"count":2,"msg":"respawned"}"#);
    for id in &ids[2..4] {
        let job = lmstfy.consume("q", "").await;
        assert_eq!((&job["job_id"], &job["ttl"]), (&json!(id), &json!(0)));
    }
    lmstfy.ask("DELETE", &format!("{path}?limit=9223372036854775807"), "").await.is_empty(204);
    deadletter(&lmstfy, "", 0).await;
    lmstfy.ask("PUT", &format!("{path}?limit=5"), "").await.is_json(200, r#"{"count":0,"msg":"respawned"}"#);
    lmstfy.ask("DELETE", path, "").await.is_empty(204);
}

#[tokio::test]
async fn a_respawned_job_has_one_try_whatever_it_had_and_keeps_what_it_carries() {
    let lmstfy = Lmstfy::start().await;
    let headers = [("X-Token", super::TOKEN), ("Enable-Job-Version", "yes"), ("Job-Attr-A", "1")];
    let reply = lmstfy.ask_with("PUT", "/api/ns/q?tries=2", &headers, "x").await;
    let id = reply.json()["job_id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        lmstfy.consume("q", "ttr=1").await;
    }
    eventually("it is dead", async || (lmstfy.sizes("q").await[3] == 1).then_some(())).await;
    let respawned = lmstfy.ask("PUT", "/api/ns/q/deadletter?ttl=50", "").await;
    respawned.is_json(200, r#"{"count":1,"msg":"respawned"}"#);
    lmstfy.ask("GET", "/api/ns/q?ttr=1", "").await.is_job(&format!(
        r#"{{"attributes":{{"a":"1"}},"data":"eA==","elapsed_ms":ELAPSED,"job_id":"{id}","msg":"new job","namespace":"ns","queue":"q","remain_tries":0,"ttl":50}}"#
    ));
    eventually("it is dead again", async || (lmstfy.sizes("q").await == [0, 0, 0, 1]).then_some(())).await;
}

#[tokio::test]
async fn many_dead_letters_are_respawned_and_deleted_page_by_page() {
    let lmstfy = Lmstfy::start().await;
    dead(&lmstfy, "q", "tries=1", 250).await;
    let path = "/api/ns/q/deadletter?limit=";
    lmstfy.ask("PUT", &format!("{path}220"), "").await.is_json(200, r#"{"count":220,"msg":"respawned"}"#);
    assert_eq!(lmstfy.sizes("q").await, [220, 0, 0, 30]);
    lmstfy.ask("DELETE", &format!("{path}29"), "").await.is_empty(204);
    assert_eq!(lmstfy.sizes("q").await, [220, 0, 0, 1]);
}
