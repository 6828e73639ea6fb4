use serde_json::json;

use crate::program::said;
use crate::redis_server::RedisServer;
use crate::service::Service;

#[tokio::test]
async fn over_http_a_queue_forwards_only_where_the_service_allows() {
    let redis = RedisServer::start(&[]).await;
    let url = redis.url();
    let closed = Service::with(&["--redis", &url]).await;
    let open = ["--redis", &url, "--forward-to", "list:out-*", "--forward-to", "stream:events"];
    let open = Service::with(&open).await;
    for (destination, allowed) in
        [("list:out-1", true), ("stream:events", true), ("list:other", false), ("stream:out-1", false)]
    {
        let config = json!({ "forward": destination }).to_string();
        let refused = closed.put("/v1/queues/q/config", config.clone()).await;
        refused.is_problem(403, "forward_not_allowed", "start it with --forward-to");
        assert!(refused.json["detail"].as_str().unwrap().contains(destination), "{refused:?}");
        let asked = open.put("/v1/queues/q/config", config).await;
        assert_eq!(asked.status == 200, allowed, "{destination}: {asked:?}");
        if allowed {
            // What is set already may stay.
            let kept = json!({ "forward": destination, "attempts": 5 }).to_string();
            assert_eq!(closed.put("/v1/queues/q/config", kept).await.status, 200);
            assert_eq!(closed.put("/v1/queues/q/config", "{}").await.status, 200);
        }
    }
    // Whoever reaches Redis needs no leave of the service.
    said(&redis, &["config", "set", "q", "forward=list:other", "--create"]).await;
}
