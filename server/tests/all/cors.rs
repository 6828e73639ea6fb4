//! Which pages may ask the service.

use crate::raw::{Came, Raw};
use crate::service::Service;

const APP: &str = "https://app.example.org";

async fn ask(service: &Service, route: &str, headers: &[(&str, &str)]) -> Came {
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let headers = headers.concat();
    Raw::connect(service).await.ask(route, &headers, "").await
}

/// What a browser asks before a page may publish.
async fn preflight(service: &Service, origin: &str) -> Came {
    let asks = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,content-type"),
        ("Access-Control-Request-Private-Network", "true"),
    ];
    ask(service, "OPTIONS /v1/queues/q/jobs", &asks).await
}

fn header<'a>(came: &'a Came, name: &str) -> Option<&'a str> {
    came.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test]
async fn a_page_of_a_named_origin_may_do_all_and_of_others_nothing() {
    let service = Service::with(&["--cors", APP, "--cors", "http://localhost:5173"]).await;
    for origin in [APP, "http://localhost:5173"] {
        let came = preflight(&service, origin).await;
        assert_eq!(came.status, 200, "{came:?}");
        assert_eq!(header(&came, "access-control-allow-origin"), Some(origin), "{came:?}");
        assert_eq!(header(&came, "access-control-allow-headers"), Some("authorization,content-type"));
        assert_eq!(header(&came, "access-control-allow-private-network"), Some("true"));
        assert_eq!(header(&came, "access-control-allow-credentials"), None);
        let methods = header(&came, "access-control-allow-methods").unwrap();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            assert!(methods.split(',').any(|allowed| allowed == method), "{came:?}");
        }
        let page = [("Origin", origin), ("Sec-Fetch-Site", "cross-site")];
        let came = ask(&service, "POST /v1/queues/q/jobs", &page).await;
        assert_eq!(came.status, 201, "{came:?}");
        assert_eq!(header(&came, "access-control-allow-origin"), Some(origin));
        assert!(header(&came, "vary").unwrap().contains("origin"), "{came:?}");
        assert!(header(&came, "access-control-expose-headers").unwrap().contains("retry-after"), "{came:?}");
        // Also why it was refused.
        let came = ask(&service, "POST /v1/queues/q/no-such-route", &page).await;
        assert_eq!((came.status, header(&came, "access-control-allow-origin")), (404, Some(origin)));
    }
    for origin in ["https://evil.example", "https://app.example.org:444", "http://app.example.org", "null"] {
        let came = preflight(&service, origin).await;
        assert_eq!(header(&came, "access-control-allow-origin"), None, "{came:?}");
        let came = ask(&service, "POST /v1/queues/q/jobs", &[("Origin", origin)]).await;
        came.is_problem(403, "cross_site");
        let came = ask(&service, "GET /v1/queues", &[("Origin", origin)]).await;
        assert_eq!((came.status, header(&came, "access-control-allow-origin")), (200, None));
    }
    assert_eq!(service.sizes("q").await, [2, 0, 0, 0]);
}

#[tokio::test]
async fn a_page_of_any_origin_may_change_something_if_it_has_a_token() {
    let service = Service::with(&["--cors", "*"]).await;
    let page = ("Origin", "https://anywhere.example");
    let came = preflight(&service, page.1).await;
    assert_eq!((came.status, header(&came, "access-control-allow-origin")), (200, Some("*")), "{came:?}");
    assert_eq!(header(&came, "access-control-allow-credentials"), None);
    assert_eq!(header(&came, "access-control-allow-private-network"), None);
    let route = "POST /v1/queues/q/jobs";
    ask(&service, route, &[page]).await.is_problem(403, "cross_site");
    ask(&service, route, &[page, ("Authorization", "Basic dTpw")]).await.is_problem(403, "cross_site");
    assert_eq!(ask(&service, route, &[page, ("Authorization", "Bearer t")]).await.status, 201);
}

#[tokio::test]
async fn without_the_option_no_browser_is_told_anything() {
    let service = Service::start().await;
    let came = preflight(&service, APP).await;
    assert_eq!((came.status, header(&came, "access-control-allow-origin")), (405, None), "{came:?}");
    let came = ask(&service, "GET /v1/queues", &[("Origin", APP)]).await;
    assert_eq!((came.status, header(&came, "access-control-allow-origin")), (200, None), "{came:?}");
}

#[tokio::test]
async fn a_preflight_to_a_host_that_is_not_ours_is_misdirected() {
    let service = Service::with(&["--cors", APP]).await;
    let mut raw = Raw::connect(&service).await;
    let asks = format!("Origin: {APP}\r\nAccess-Control-Request-Method: POST\r\n");
    raw.write(format!("OPTIONS /v1/queues HTTP/1.1\r\nHost: evil.example\r\n{asks}\r\n")).await;
    raw.answer().await.is_problem(421, "wrong_host");
}

#[tokio::test]
async fn an_origin_has_no_path() {
    let words = ["serve", "--cors", "https://app.example.org/page"];
    let output = crate::program::delayline(None, &words).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
