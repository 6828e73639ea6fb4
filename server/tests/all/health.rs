use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use delayline::Door;
use delayline_tokio::{Client, Error, redis};
use reqwest::Method;

use crate::redis_server::RedisServer;
use crate::service::{Service, bind, send};

#[tokio::test]
async fn it_is_healthy_and_ready() {
    let service = Service::start().await;
    for path in ["/healthz", "/readyz"] {
        let answer = service.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.json.as_str()), (200, Some("ok\n")));
    }
}

#[tokio::test]
async fn when_the_engine_panics_it_is_unhealthy_and_ends_with_a_code() {
    let server = bind(&[]).await.unwrap();
    let (client, door) = (server.client().clone(), server.door());
    let serving = tokio::spawn(server.run_until(std::future::pending()));
    client.panic_engines();
    let ended = tokio::time::timeout(Duration::from_secs(60), serving).await.expect("it goes on");
    let failure = ended.unwrap().unwrap_err();
    assert_eq!((failure.exit_code(), failure.to_string()), (1, Error::EnginePanicked.to_string()));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status(&door, path).await, 503, "{path}");
    }
}

#[tokio::test]
async fn when_the_engine_was_closed_it_is_unhealthy() {
    let server = bind(&[]).await.unwrap();
    let door = server.door();
    assert_eq!(status(&door, "/healthz").await, 200);
    server.client().clone().close().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status(&door, path).await, 503, "{path}");
    }
}

/// The queues now live in so many shards as this service does not know of: its engine stops by itself.
#[tokio::test]
async fn when_the_engine_has_stopped_by_itself_it_is_unhealthy() {
    let redis = RedisServer::start(&[]).await;
    let server = bind(&["--redis", &format!("{}?shards=4", redis.url())]).await.unwrap();
    let door = server.door();
    assert_eq!((status(&door, "/readyz").await, status(&door, "/healthz").await), (200, 200));
    let mut connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    redis::cmd("FLUSHALL").exec(&mut connection).unwrap();
    let _other = Client::connect(&format!("{}?shards=2", redis.url())).await.unwrap();
    crate::eventually("its engine ends", async || {
        assert_eq!(status(&door, "/readyz").await, 502);
        (status(&door, "/healthz").await == 502).then_some(())
    })
    .await;
}

async fn status(door: &Door, path: &str) -> u16 {
    let request = Request::get(path).header("Host", "localhost").body(Body::empty()).unwrap();
    door.answer(request).await.status().as_u16()
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_not_there() {
    let service = Service::start().await;
    service.get("/v2/queues").await.is_problem(404, "no_such_route", "the routes are in docs/http.md");
    let answer = send(service.request(Method::PATCH, "/v1/queues/q")).await;
    answer.is_problem(405, "method_not_allowed", "the header Allow says");
    assert_eq!(answer.headers["allow"], "GET,HEAD,DELETE");
}
