use delayline_http::ROUTES;
use reqwest::Method;

use crate::raw::{Came, Raw};
use crate::service::Service;

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// Every path of the service, with something in each of its places.
fn paths() -> Vec<String> {
    let paths = ROUTES.iter().map(|route| route.path);
    let paths: Vec<String> = paths
        .map(|path| path.replace("{queue}", "q").replace("{id}", "a").replace("{lease}", "q:a:1:1:1"))
        .map(|path| path.replace("{namespace}", "n").replace("{token}", "t"))
        .collect();
    assert!(paths.len() > 20 && paths.iter().all(|path| !path.contains('{')), "{paths:?}");
    paths
}

async fn ask(service: &Service, method: &str, path: &str, headers: &str) -> Came {
    let mut raw = Raw::connect(service).await;
    raw.write(format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n"))
        .await;
    raw.answer_to(method).await
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing_and_takes_nothing_by_any_route() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let address = service.address();
    for path in paths() {
        for method in METHODS {
            let is_safe = ["GET", "HEAD"].contains(&method);
            for (header, is_foreign) in [
                ("Origin: https://evil.example", true),
                ("Origin: http://localhost:3000", true),
                ("Origin: null", true),
                ("Sec-Fetch-Site: cross-site", true),
                ("Sec-Fetch-Site: same-site", true),
                (&format!("Origin: http://{address}\r\nSec-Fetch-Site: cross-site"), true),
                (&format!("Origin: http://{address}\r\nSec-Fetch-Site: same-origin"), false),
                ("Sec-Fetch-Site: none", false),
                ("Accept: */*", false),
            ] {
                if !is_foreign && !is_safe {
                    continue;
                }
                let came = ask(&service, method, &path, &format!("Host: {address}\r\n{header}\r\n")).await;
                let is_refused = came.status == 403;
                assert_eq!(is_refused, is_foreign && !is_safe, "{method} {path} {header}: {came:?}");
                if is_refused && method != "HEAD" {
                    came.is_problem(403, "cross_site");
                }
            }
        }
    }
    assert_eq!(service.sizes("q").await, [1, 0, 0, 0]);
    let queue = service.get("/v1/queues/q").await.json;
    assert_eq!((&queue["paused"], &queue["cfgver"]), (&false.into(), &0.into()));
}

#[tokio::test]
async fn a_page_of_the_same_origin_may_do_all() {
    let service = Service::start().await;
    for headers in [
        vec![("origin", service.base.clone())],
        vec![("origin", service.base.clone()), ("sec-fetch-site", "same-origin".to_string())],
        vec![("sec-fetch-site", "none".to_string())],
    ] {
        let mut request = service.request(Method::POST, "/v1/queues/q/jobs");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        assert_eq!(crate::service::send(request.body("1")).await.status, 201);
    }
}

#[tokio::test]
async fn a_host_that_is_not_ours_is_misdirected_on_every_route() {
    let service = Service::with(&["--host", "queue.example,delayline.test"]).await;
    let address = service.address();
    for path in paths() {
        for method in METHODS {
            for (headers, status) in [
                (String::new(), 400),
                (format!("Host: {address}\r\nHost: {address}\r\n"), 400),
                (format!("Host: {address}\r\nHost: evil.example\r\n"), 400),
                ("Host:\r\n".to_string(), 400),
                ("Host: evil.example\r\n".to_string(), 421),
                ("Host: evil.example:4747\r\n".to_string(), 421),
                ("Host: 127.0.0.1.evil.example\r\n".to_string(), 421),
                ("Host: localhost.evil.example\r\n".to_string(), 421),
                ("Host: 10.1.2.3\r\n".to_string(), 421),
                ("Host: user@localhost\r\n".to_string(), 400),
            ] {
                let came = ask(&service, method, &path, &headers).await;
                assert_eq!(came.status, status, "{method} {path} {headers}: {came:?}");
                if method != "HEAD" {
                    came.is_problem(status, if status == 400 { "bad_host" } else { "wrong_host" });
                }
            }
        }
    }
    for host in [
        "localhost",
        "LOCALHOST:1",
        "localhost.",
        "127.0.0.1",
        "127.9.9.9:80",
        "[::1]",
        "[::1]:4747",
        "queue.example",
        "Delayline.Test:443",
    ] {
        let came = ask(&service, "GET", "/healthz", &format!("Host: {host}\r\n")).await;
        assert_eq!(came.status, 200, "{host}: {came:?}");
    }
    let mut raw = Raw::connect(&service).await;
    raw.write("GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    raw.answer().await.is_problem(421, "wrong_host");
}

#[tokio::test]
async fn a_service_that_others_reach_is_known_by_any_address_but_by_no_unknown_name() {
    let service = Service::with(&["--listen", "0.0.0.0:0", "--insecure"]).await;
    for (host, status) in
        [("10.1.2.3:4747", 200), ("[2001:db8::1]", 200), ("localhost", 200), ("queue.example", 421)]
    {
        let came = ask(&service, "GET", "/healthz", &format!("Host: {host}\r\n")).await;
        assert_eq!(came.status, status, "{host}: {came:?}");
    }
}
