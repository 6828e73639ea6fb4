use reqwest::Method;

use crate::service::{Service, send};

#[tokio::test]
async fn it_is_healthy_and_ready() {
    let service = Service::start().await;
    for path in ["/healthz", "/readyz"] {
        let answer = service.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.json.as_str()), (200, Some("ok\n")));
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
