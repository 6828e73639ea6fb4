use serde_json::json;

use super::Lmstfy;
use crate::eventually;

#[tokio::test]
async fn the_first_ready_job_is_seen_and_stays() {
    let lmstfy = Lmstfy::start().await;
    lmstfy.ask("GET", "/api/ns/q/peek", "").await.is_error(404, "the queue is empty");
    lmstfy.publish("/api/ns/q?delay=3600", "later").await;
    lmstfy.ask("GET", "/api/ns/q/peek", "").await.is_error(404, "the queue is empty");
    let first = lmstfy.publish("/api/ns/q?tries=3", "1").await;
    lmstfy.publish("/api/ns/q", "2").await;
    for _ in 0..2 {
        lmstfy.ask("GET", "/api/ns/q/peek", "").await.is_job(&format!(
            r#"{{"attributes":null,"data":"MQ==","elapsed_ms":ELAPSED,"job_id":"{first}","namespace":"ns","queue":"q","remain_tries":3,"ttl":86400}}"#
        ));
    }
    // lmstfy shows the ghost of a head that was deleted.
    lmstfy.ask("DELETE", &format!("/api/ns/q/job/{first}"), "").await.is_empty(204);
    assert_eq!(lmstfy.ask("GET", "/api/ns/q/peek", "").await.json()["data"], "Mg==");
}

#[tokio::test]
async fn a_job_is_seen_by_its_id_wherever_it_is() {
    let lmstfy = Lmstfy::start().await;
    let headers = [("X-Token", super::TOKEN), ("Enable-Job-Version", "yes"), ("Job-Attr-A", "1")];
    let reply = lmstfy.ask_with("PUT", "/api/ns/q?delay=1&tries=1", &headers, "x").await;
    let id = reply.json()["job_id"].as_str().unwrap().to_owned();
    let path = format!("/api/ns/q/job/{id}");
    let object = |ttl: u64| {
        format!(
            r#"{{"attributes":{{"a":"1"}},"data":"eA==","elapsed_ms":ELAPSED,"job_id":"{id}","namespace":"ns","queue":"q","remain_tries":0,"ttl":{ttl}}}"#
        )
    };
    lmstfy.ask("GET", &path, "").await.is_job(&object(86_400));
    lmstfy.consume("q", "ttr=1").await;
    let held = lmstfy.ask("GET", &path, "").await;
    held.is_job(&object(held.json()["ttl"].as_u64().unwrap()));
    eventually("it is dead", async || (lmstfy.sizes("q").await[3] == 1).then_some(())).await;
    lmstfy.ask("GET", &path, "").await.is_job(&object(0));
    for other in ["/api/ns/q/job/nobody", "/api/ns/q/job/no%20id", &*format!("/api/ns/r/job/{id}")] {
        lmstfy.ask("GET", other, "").await.is_error(404, "job not found");
    }
}

#[tokio::test]
async fn a_deletion_ends_a_job_wherever_it_is_and_is_always_well() {
    let lmstfy = Lmstfy::start().await;
    let delayed = lmstfy.publish("/api/ns/q?delay=3600", "x").await;
    let dead = lmstfy.publish("/api/ns/q?tries=1", "x").await;
    lmstfy.consume("q", "ttr=1").await;
    eventually("it is dead", async || (lmstfy.sizes("q").await[3] == 1).then_some(())).await;
    let held = lmstfy.publish("/api/ns/q", "x").await;
    lmstfy.consume("q", "").await;
    let ready = lmstfy.publish("/api/ns/q", "x").await;
    assert_eq!(lmstfy.sizes("q").await, [1, 1, 1, 1]);
    let others = ["/api/ns/q/job/nobody", "/api/ns/q/job/no%20id", &*format!("/api/ns/r/job/{ready}")];
    for path in others {
        lmstfy.ask("DELETE", path, "").await.is_empty(204);
    }
    assert_eq!(lmstfy.sizes("q").await, [1, 1, 1, 1]);
    for (n, id) in [delayed, dead, held, ready].iter().enumerate() {
        for _ in 0..2 {
            lmstfy.ask("DELETE", &format!("/api/ns/q/job/{id}"), "").await.is_empty(204);
        }
        assert_eq!(lmstfy.sizes("q").await.iter().sum::<u64>(), 3 - n as u64);
    }
}

/// The wire says nothing of which delivery an ack is for: the consumer that has done the job says so, late or not.
#[tokio::test]
async fn a_late_ack_ends_the_job_that_another_consumer_holds() {
    let lmstfy = Lmstfy::start().await;
    let id = lmstfy.publish("/api/ns/q?tries=5", "x").await;
    lmstfy.consume("q", "ttr=1").await;
    assert_eq!(lmstfy.consume("q", "ttr=3600").await["job_id"], json!(id));
    lmstfy.ask("DELETE", &format!("/api/ns/q/job/{id}"), "").await.is_empty(204);
    assert_eq!(lmstfy.sizes("q").await, [0; 4]);
}

#[tokio::test]
async fn sizes_count_what_there_is_and_ask_for_no_token() {
    let lmstfy = Lmstfy::start().await;
    let size = async |lmstfy: &Lmstfy| lmstfy.ask_with("GET", "/api/ns/q/size", &[], "").await;
    size(&lmstfy).await.is_json(200, r#"{"namespace":"ns","queue":"q","size":0}"#);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(lmstfy.publish("/api/ns/q", "x").await);
    }
    lmstfy.publish("/api/ns/q?delay=3600", "x").await;
    lmstfy.consume("q", "").await;
    size(&lmstfy).await.is_json(200, r#"{"namespace":"ns","queue":"q","size":2}"#);
    // lmstfy goes on counting it.
    lmstfy.ask("DELETE", &format!("/api/ns/q/job/{}", ids[2]), "").await.is_empty(204);
    size(&lmstfy).await.is_json(200, r#"{"namespace":"ns","queue":"q","size":1}"#);
}

#[tokio::test]
async fn destroying_takes_the_ready_jobs_away_and_no_others() {
    let lmstfy = Lmstfy::start().await;
    lmstfy.ask("DELETE", "/api/ns/none", "").await.is_empty(204);
    lmstfy.publish("/api/ns/q?delay=3600", "x").await;
    lmstfy.publish("/api/ns/q", "x").await;
    lmstfy.consume("q", "").await;
    for _ in 0..9 {
        assert_eq!(lmstfy.ask("PUT", "/api/ns/q/bulk", super::array(0, 64)).await.status, 201);
    }
    assert_eq!(lmstfy.sizes("q").await, [576, 1, 1, 0]);
    lmstfy.ask("DELETE", "/api/ns/q", "").await.is_empty(204);
    assert_eq!(lmstfy.sizes("q").await, [0, 1, 1, 0]);
}
