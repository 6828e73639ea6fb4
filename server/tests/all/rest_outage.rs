use std::time::{Duration, Instant};

use serde_json::json;

use crate::redis_server::RedisServer;
use crate::rest_endpoint::RestEndpoint;

#[tokio::test]
async fn a_redis_that_is_away_is_told_at_once_and_found_again() {
    let mut redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    assert_eq!(rest.get("/set/k/v").await.status, 200);
    redis.kill();
    let begun = Instant::now();
    let lost = rest.get("/get/k").await;
    assert_eq!(lost.status, 503, "{lost:?}");
    for (path, body) in
        [("/", r#"["GET","k"]"#), ("/pipeline", r#"[["GET","k"]]"#), ("/multi-exec", r#"[["GET","k"]]"#)]
    {
        let away = rest.post(path, body).await;
        assert_eq!(away.status, 503, "{away:?}");
        let says = away.json["error"].as_str().unwrap();
        assert!(says.contains("cannot be reached") && says.contains("Nothing was executed"), "{says}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    redis.replace().await;
    crate::eventually("it is reached again", async || (rest.get("/ping").await.status == 200).then_some(()))
        .await;
    assert_eq!(rest.get("/get/k").await.json, json!({"result": null}));
}

#[tokio::test]
async fn a_request_under_way_is_told_that_its_connection_broke() {
    let mut redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--timeout", "60s"]).await;
    let forever = rest.ask(json!(["EVAL", "while true do end", 0]));
    let killed = async {
        crate::eventually("the script keeps others waiting", async || {
            let ping = rest.request(reqwest::Method::GET, "/ping").timeout(Duration::from_millis(100));
            ping.send().await.is_err_and(|error| error.is_timeout()).then_some(())
        })
        .await;
        redis.kill();
    };
    let (lost, ()) = tokio::join!(forever, killed);
    assert_eq!(lost.status, 503, "{lost:?}");
    assert!(lost.json["error"].as_str().unwrap().contains("not known whether"), "{lost:?}");
}
