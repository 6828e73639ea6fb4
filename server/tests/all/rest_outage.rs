use std::time::{Duration, Instant};

use serde_json::json;

use crate::proxy::Proxy;
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

#[tokio::test]
async fn a_silent_connection_is_given_up_and_made_anew() {
    let redis = RedisServer::start(&[]).await;
    let proxy = Proxy::before(&redis).await;
    let rest = RestEndpoint::at(&proxy.url(), &["--timeout", "500ms"]).await;
    assert_eq!(rest.get("/set/k/v").await.status, 200);
    for (path, body) in
        [("/", r#"["GET","k"]"#), ("/pipeline", r#"[["GET","k"]]"#), ("/multi-exec", r#"[["GET","k"]]"#)]
    {
        proxy.silence();
        let begun = Instant::now();
        let late = rest.post(path, body).await;
        let took = begun.elapsed();
        assert_eq!(late.status, 504, "{late:?}");
        let says = late.json["error"].as_str().unwrap();
        assert!(says.contains("did not answer within 500ms") && says.contains("not known whether"), "{says}");
        assert!((Duration::from_millis(500)..Duration::from_secs(5)).contains(&took), "{took:?}");
        let next = rest.post(path, body).await;
        assert_eq!(next.status, 200, "{next:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_redis_that_stands_still_is_told_of_in_time_and_found_again() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--timeout", "300ms"]).await;
    assert_eq!(rest.get("/set/k/v").await.status, 200);
    redis.pause();
    let begun = Instant::now();
    let late = rest.get("/get/k").await;
    assert_eq!(late.status, 504, "{late:?}");
    // A connection can be made, and nobody speaks on it.
    let away = rest.get("/get/k").await;
    assert_eq!(away.status, 503, "{away:?}");
    assert_eq!(away.headers["retry-after"], "1");
    assert!(away.json["error"].as_str().unwrap().contains("Nothing was executed"), "{away:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    redis.resume();
    crate::eventually("it is reached again", async || {
        (rest.get("/get/k").await.json == json!({"result": "v"})).then_some(())
    })
    .await;
}
