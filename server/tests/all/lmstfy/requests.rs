//! What is so of every request, whatever it asks for.

use super::{Lmstfy, TOKEN};
use crate::service;

#[tokio::test]
async fn what_has_no_route_is_not_found_and_a_wrong_method_neither() {
    let lmstfy = Lmstfy::start().await;
    lmstfy.publish("/api/ns/q", "x").await;
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/api/ns"),
        ("GET", "/v1/queues"),
        ("POST", "/api/ns/q"),
        ("PATCH", "/api/ns/q/job/x"),
        ("GET", "/api/ns/q/bulk"),
        ("PUT", "/api/ns/q/size"),
        ("DELETE", "/api/ns/q/peek"),
        ("OPTIONS", "/api/ns/q"),
        ("GET", "/metrics"),
    ] {
        lmstfy.ask(method, path, "").await.is_error(404, "api not found");
    }
    // It would take a job that nobody sees.
    assert_eq!(lmstfy.ask("HEAD", "/api/ns/q", "").await.status, 404);
    assert_eq!(lmstfy.sizes("q").await, [1, 0, 0, 0]);
    for (method, path) in [("GET", "/"), ("POST", "/pools"), ("GET", "/debug/pprof/"), ("HEAD", "/pools")] {
        let reply = lmstfy.admin(method, path, "").await;
        let body = if method == "HEAD" { "" } else { "404 page not found" };
        reply.is(404, "text/plain", body);
    }
}

#[tokio::test]
async fn no_page_of_another_site_asks_for_anything() {
    let lmstfy = Lmstfy::with(&["--lmstfy-open"]).await;
    for base in [&lmstfy.api, &lmstfy.admin] {
        for (method, headers, status) in [
            ("PUT", [("Origin", "https://evil.example"), ("x", "x")], 403),
            ("DELETE", [("Sec-Fetch-Site", "cross-site"), ("x", "x")], 403),
            ("GET", [("Host", "evil.example"), ("x", "x")], 421),
        ] {
            let reply = lmstfy.send(method, &format!("{base}/api/ns/q"), &headers, "x").await;
            assert_eq!(reply.status, status, "{reply:?}");
            assert!(reply.body.starts_with(r#"{"error":""#), "{reply:?}");
        }
    }
    assert_eq!(lmstfy.sizes("q").await, [0; 4]);
}

#[tokio::test]
async fn who_comes_without_a_token_is_told_what_lmstfy_tells() {
    let lmstfy = Lmstfy::start().await;
    for (headers, query, status, error) in [
        (vec![], "", 401, "token not found"),
        (vec![("X-Token", "")], "", 401, "token not found"),
        (vec![("X-Token", "wrong")], "", 401, "invalid token"),
        (vec![("X-Token", "wrong")], TOKEN, 401, "invalid token"),
        (vec![], "default:", 401, "token not found"),
        (vec![], "other:x", 404, "pool not found"),
        (vec![("X-Token", "other:01M7XABF4514NXTZ825W000000")], "", 404, "pool not found"),
    ] {
        for (method, path) in [("PUT", "/api/ns/q"), ("GET", "/api/ns/q"), ("GET", "/api/ns/q/peek")] {
            let reply = lmstfy.ask_with(method, &format!("{path}?token={query}"), &headers, "x").await;
            reply.is_error(status, error);
        }
    }
    // Names are looked at before the pool, and that before the token.
    let wrong = [("X-Token", "other:wrong")];
    let forbidden = "queue name contains forbidden characters";
    lmstfy.ask_with("PUT", "/api/ns/_q", &wrong, "x").await.is_error(400, forbidden);
    // A token opens one namespace.
    lmstfy.ask("PUT", "/api/other/q", "x").await.is_error(401, "invalid token");
    for query in [format!("token={TOKEN}"), format!("token=default:{TOKEN}")] {
        assert_eq!(lmstfy.ask_with("PUT", &format!("/api/ns/q?{query}"), &[], "x").await.status, 201);
    }
    let with_pool = format!("default:{TOKEN}");
    let reply = lmstfy.ask_with("GET", "/api/ns/q", &[("X-Token", &with_pool)], "").await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn an_open_service_asks_for_no_token_and_is_not_open_to_others() {
    let lmstfy = Lmstfy::without_token(&["--lmstfy-open"]).await;
    assert_eq!(lmstfy.ask_with("PUT", "/api/any/q", &[], "x").await.status, 201);
    assert_eq!(lmstfy.ask_with("GET", "/api/any/q", &[("X-Token", "wrong")], "").await.status, 200);
    lmstfy.ask_with("GET", "/api/any/q?token=other:x", &[], "").await.is_error(404, "pool not found");
    for (arguments, may) in [
        (&["--lmstfy", "0.0.0.0:0"][..], true),
        (&["--lmstfy", "0.0.0.0:0", "--lmstfy-open"], false),
        (&["--lmstfy", "0.0.0.0:0", "--lmstfy-open", "--insecure"], true),
        (&["--lmstfy-admin", "0.0.0.0:0"], false),
        (&["--lmstfy-admin", "0.0.0.0:0", "--insecure"], true),
    ] {
        let bound = service::bind(arguments).await;
        assert_eq!(bound.is_ok(), may, "{arguments:?}");
        if let Err(refused) = bound {
            assert!(refused.to_string().contains("can be reached from other machines"), "{refused}");
        }
    }
}

/// A token of the service's own may do what it is for, in the queues that it is for.
#[tokio::test]
async fn tokens_of_the_other_api_are_let_in_for_what_they_are_for() {
    let lmstfy = Lmstfy::start().await;
    // Nobody needs one yet: a wrong one opens nothing all the same.
    let wrong = format!("dl_{}_{}", "0".repeat(16), "0".repeat(64));
    lmstfy.ask_with("PUT", "/api/ns/q", &[("X-Token", &wrong)], "x").await.is_error(401, "invalid token");
    let made = lmstfy.http.post(format!("{}/v1/tokens", lmstfy.native));
    let made = service::send(made.body(r#"{"scopes":["publish"],"queues":["ns~q*"]}"#)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let token = service::text(&made.json["token"]);
    let token = [("X-Token", &*token)];
    assert_eq!(lmstfy.ask_with("PUT", "/api/ns/q", &token, "x").await.status, 201);
    assert_eq!(lmstfy.ask_with("PUT", "/api/ns/q/bulk", &token, "[1]").await.status, 201);
    for (method, path) in [
        ("PUT", "/api/ns/r"),
        ("PUT", "/api/other/q"),
        ("PUT", "/api/ns/q/job/x"),
        ("GET", "/api/ns/q"),
        ("GET", "/api/ns/q/peek"),
        ("GET", "/api/ns/q/job/x"),
        ("DELETE", "/api/ns/q/job/x"),
        ("DELETE", "/api/ns/q"),
        ("GET", "/api/ns/q/deadletter"),
        ("PUT", "/api/ns/q/deadletter"),
        ("DELETE", "/api/ns/q/deadletter"),
    ] {
        lmstfy.ask_with(method, path, &token, "x").await.is_error(401, "invalid token");
    }
    // lmstfy's own token goes on.
    assert_eq!(lmstfy.ask("GET", "/api/ns/q", "").await.status, 200);
}

#[tokio::test]
async fn a_client_that_asks_too_often_is_told_so() {
    let lmstfy = Lmstfy::with(&["--client-requests", "1/s burst 5"]).await;
    let mut published = 0;
    let refused = loop {
        let reply = lmstfy.ask("PUT", "/api/ns/q", "1").await;
        if reply.status != 201 {
            break reply;
        }
        published += 1;
        assert!(published < 20, "none is refused");
    };
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(
        refused.body.starts_with(r#"{"error":""#) && refused.body.contains("--client-requests"),
        "{refused:?}"
    );
}
