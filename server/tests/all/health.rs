use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use delayline_tokio::Error;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use reqwest::Method;

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
    let (client, router) = (server.client().clone(), TowerToHyperService::new(server.router()));
    let serving = tokio::spawn(server.run_until(std::future::pending()));
    client.panic_engines();
    let ended = tokio::time::timeout(Duration::from_secs(60), serving).await.expect("it goes on");
    let failure = ended.unwrap().unwrap_err();
    assert_eq!((failure.exit_code(), failure.to_string()), (1, Error::EnginePanicked.to_string()));
    for path in ["/healthz", "/readyz"] {
        let request = Request::get(path).header("Host", "localhost").body(Body::empty()).unwrap();
        let answer = router.call(request).await.unwrap();
        assert_eq!(answer.status(), 503, "{path}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_not_there() {
    let service = Service::start().await;
    service.get("/v2/queues").await.is_problem(404, "no_such_route", "the routes are in the README");
    let answer = send(service.request(Method::PATCH, "/v1/queues/q")).await;
    answer.is_problem(405, "method_not_allowed", "the header Allow says");
    assert_eq!(answer.headers["allow"], "GET,HEAD,DELETE");
}
