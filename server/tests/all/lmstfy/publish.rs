use super::{Lmstfy, array, is_ulid};

#[tokio::test]
async fn a_job_is_published_and_its_id_is_a_ulid_that_sorts_by_time() {
    let lmstfy = Lmstfy::start().await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(lmstfy.publish("/api/ns/q", &n.to_string()).await);
    }
    assert!(ids.iter().all(|id| is_ulid(id)), "{ids:?}");
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    for id in ids {
        assert_eq!(lmstfy.consume("q", "").await["job_id"], *id);
    }
}

#[tokio::test]
async fn what_cannot_be_published_is_refused_in_lmstfys_order() {
    let lmstfy = Lmstfy::start().await;
    let long = "q".repeat(256);
    for path in ["/api/ns/q", "/api/ns/q/bulk", "/api/ns/q/job/x"] {
        for (query, error) in [
            ("delay=x&ttl=x&tries=x", "invalid delay"),
            ("delay=-1", "invalid delay"),
            ("delay=", "invalid delay"),
            ("delay=4294967296", "invalid delay"),
            ("ttl=1.5&tries=x", "invalid ttl"),
            ("ttl=5&delay=6&tries=x", "ttl is shorter than delay"),
            ("delay=86401", "ttl is shorter than delay"),
            ("tries=65536", "invalid tries"),
            ("tries=0", "tries shouldn't be zero"),
        ] {
            lmstfy.ask("PUT", &format!("{path}?{query}"), "x").await.is_error(400, error);
        }
    }
    for (path, error) in [
        (format!("/api/{long}/q"), "namespace or queue name too long"),
        (format!("/api/ns/{long}"), "namespace or queue name too long"),
        ("/api/n~s/q".to_owned(), "namespace name contains forbidden characters"),
        ("/api/ns/a.b".to_owned(), "queue name contains forbidden characters"),
        ("/api/ns/_q".to_owned(), "queue name contains forbidden characters"),
        ("/api/ns/a,b".to_owned(), "queue name contains forbidden characters"),
    ] {
        lmstfy.ask("PUT", &path, "x").await.is_error(400, error);
    }
    assert_eq!(lmstfy.sizes("q").await, [0; 4]);
}

#[tokio::test]
async fn bodies_are_carried_as_they_are_up_to_a_mebibyte() {
    let lmstfy = Lmstfy::start().await;
    let full: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[0]).collect();
    assert_eq!(lmstfy.ask("PUT", "/api/ns/q", full.clone()).await.status, 201);
    let over = vec![b'x'; (1 << 20) + 1];
    lmstfy.ask("PUT", "/api/ns/q", over.clone()).await.is_error(413, "body too large");
    // The query is looked at before the body.
    lmstfy.ask("PUT", "/api/ns/q?tries=0", over).await.is_error(400, "tries shouldn't be zero");
    let job = lmstfy.consume("q", "").await;
    let data = job["data"].as_str().unwrap();
    assert_eq!(data.len(), (full.len().div_ceil(3)) * 4);
    assert!(data.starts_with("AAECAwQFBgc") && data.ends_with("=="), "{}", &data[data.len() - 20..]);
    let id = lmstfy.publish("/api/ns/empty", "").await;
    let empty = lmstfy.ask("GET", "/api/ns/empty", "").await;
    empty.is_job(&format!(
        r#"{{"attributes":null,"data":"","elapsed_ms":ELAPSED,"job_id":"{id}","msg":"new job","namespace":"ns","queue":"empty","remain_tries":0,"ttl":86400}}"#
    ));
}

#[tokio::test]
async fn attributes_are_kept_where_they_are_enabled() {
    let lmstfy = Lmstfy::start().await;
    let token = ("X-Token", super::TOKEN);
    let long = "v".repeat(200);
    let attributes = [("Job-Attr-Tenant", "<acme>"), ("job-attr-Empty", ""), ("Job-Attr-Long", &*long)];
    let enabled = [&attributes[..], &[token, ("Enable-Job-Version", "YES")]].concat();
    assert_eq!(lmstfy.ask_with("PUT", "/api/ns/q", &enabled, "x").await.status, 201);
    let without = [&attributes[..], &[token]].concat();
    assert_eq!(lmstfy.ask_with("PUT", "/api/ns/q", &without, "x").await.status, 201);
    let reply = lmstfy.ask("GET", "/api/ns/q", "").await;
    let cut = "v".repeat(128);
    let expected = format!(r#"{{"attributes":{{"long":"{cut}","tenant":"\u003cacme\u003e"}},"data":"eA==","#);
    assert!(reply.body.starts_with(&expected), "{reply:?}");
    let reply = lmstfy.ask("GET", "/api/ns/q", "").await;
    assert!(reply.body.starts_with(r#"{"attributes":null,"#), "{reply:?}");

    let names: Vec<String> = (0..17).map(|n| format!("Job-Attr-{n}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "v")).collect();
    let many = [&many[..], &[token, ("Enable-Job-Version", "yes")]].concat();
    let refused = "too many attributes, cannot exceed 16";
    lmstfy.ask_with("PUT", "/api/ns/q", &many, "x").await.is_error(400, refused);
    lmstfy.ask_with("PUT", "/api/ns/q/bulk", &many, "[1]").await.is_error(400, refused);
    let over = vec![b'x'; (1 << 20) + 1];
    lmstfy.ask_with("PUT", "/api/ns/q", &many, over).await.is_error(413, "body too large");
    let sixteen = lmstfy.ask_with("PUT", "/api/ns/q/bulk", &many[1..], "[1,2]").await;
    assert_eq!(sixteen.status, 201);
    for _ in 0..2 {
        let job = lmstfy.consume("q", "").await;
        assert_eq!(job["attributes"].as_object().unwrap().len(), 16, "{job}");
    }
}

#[tokio::test]
async fn jobs_are_published_in_bulk_in_their_order_each_by_its_json() {
    let lmstfy = Lmstfy::start().await;
    let reply = lmstfy.ask("PUT", "/api/ns/q/bulk?tries=2", r#" [ {"a": 1}, "s" , 3]"#).await;
    let ids = reply.json()["job_ids"].clone();
    let [a, b, c] = [0, 1, 2].map(|n| ids[n].as_str().unwrap().to_owned());
    reply.is_json(201, &format!(r#"{{"job_ids":["{a}","{b}","{c}"],"msg":"published"}}"#));
    for (id, data) in [(a, "eyJhIjogMX0="), (b, "InMi"), (c, "Mw==")] {
        let job = lmstfy.consume("q", "").await;
        assert_eq!((job["job_id"].as_str(), job["data"].as_str()), (Some(&*id), Some(data)));
        assert_eq!(job["remain_tries"], 1);
    }
    assert_eq!(lmstfy.ask("PUT", "/api/ns/q/bulk", array(0, 64)).await.status, 201);
    assert_eq!(lmstfy.sizes("q").await, [64, 0, 3, 0]);
}

#[tokio::test]
async fn what_cannot_be_published_in_bulk_is_refused_whole() {
    let lmstfy = Lmstfy::start().await;
    let large = format!("[1,\"{}\"]", "x".repeat((1 << 20) - 1));
    for (body, status, error) in [
        (String::new(), 400, "request body should be an array of objects"),
        ("{}".to_owned(), 400, "request body should be an array of objects"),
        ("[1,]".to_owned(), 400, "request body should be an array of objects"),
        ("[1] 2".to_owned(), 400, "request body should be an array of objects"),
        ("[]".to_owned(), 400, "no jobs"),
        ("null".to_owned(), 400, "no jobs"),
        (array(0, 65), 400, "too many jobs"),
        (array(0, 5_000), 400, "too many jobs"),
        (large, 413, "job too large"),
        ("x".repeat(65 << 20), 413, "body too large"),
    ] {
        lmstfy.ask("PUT", "/api/ns/q/bulk", body).await.is_error(status, error);
    }
    assert_eq!(lmstfy.sizes("q").await, [0; 4]);
    let full = format!("[\"{}\"]", "x".repeat((1 << 20) - 2));
    assert_eq!(lmstfy.ask("PUT", "/api/ns/q/bulk", full).await.status, 201);
}

#[tokio::test]
async fn a_job_is_published_again_only_where_all_is_well() {
    let lmstfy = Lmstfy::start().await;
    let old = lmstfy.publish("/api/ns/q?tries=3", "old").await;
    let path = format!("/api/ns/q/job/{old}");
    // lmstfy deletes first, and the job is lost.
    lmstfy.ask("PUT", &format!("{path}?ttl=x"), "new").await.is_error(400, "invalid ttl");
    let over = vec![b'x'; (1 << 20) + 1];
    lmstfy.ask("PUT", &path, over).await.is_error(413, "body too large");
    assert_eq!(lmstfy.ask("GET", &path, "").await.status, 200);

    let held = lmstfy.consume("q", "").await;
    assert_eq!(held["job_id"], *old);
    let new = lmstfy.publish(&format!("{path}?delay=3600"), "new").await;
    assert_ne!(new, old);
    lmstfy.ask("GET", &path, "").await.is_error(404, "job not found");
    assert_eq!(lmstfy.sizes("q").await, [0, 1, 0, 0]);
    // Of a job that is not there only the publishing is left.
    lmstfy.publish("/api/ns/q/job/nobody", "x").await;
    lmstfy.publish("/api/ns/q/job/no%20id", "x").await;
    assert_eq!(lmstfy.sizes("q").await, [2, 1, 0, 0]);
}

#[tokio::test]
async fn terms_beyond_our_limits_are_taken_as_far_as_they_go() {
    let lmstfy = Lmstfy::start().await;
    lmstfy.publish("/api/ns/q?tries=65535&ttl=4294967295", "x").await;
    let job = lmstfy.consume("q", "ttr=4294967295").await;
    assert_eq!((&job["remain_tries"], &job["ttl"]), (&998.into(), &0.into()));
    lmstfy.ask("PUT", "/api/ns/q?delay=4294967295&ttl=0", "x").await.is_error(400, "invalid delay");
    lmstfy.publish("/api/ns/q?delay=300000000&ttl=0", "x").await;
}

#[tokio::test]
async fn a_namespace_that_is_full_is_told_so() {
    let lmstfy = Lmstfy::start().await;
    let url = format!("{}/v1/namespaces/ns", lmstfy.native);
    let limited = lmstfy.http.put(url).body(r#"{"max_jobs":1}"#).send().await.unwrap();
    assert!(limited.status().is_success(), "{limited:?}");
    lmstfy.publish("/api/ns/q", "x").await;
    let refused = lmstfy.ask("PUT", "/api/ns/q", "x").await;
    assert!(
        refused.status == 429 && refused.body.starts_with(r#"{"error":"namespace ns may hold"#),
        "{refused:?}"
    );
    let refused = lmstfy.ask("PUT", "/api/ns/q/bulk", "[1,2]").await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(lmstfy.sizes("q").await, [1, 0, 0, 0]);
}

/// A part of a bulk would be published twice by whoever repeats it.
#[tokio::test]
async fn of_a_bulk_that_does_not_fit_into_its_queue_nothing_stays() {
    let lmstfy = Lmstfy::start().await;
    lmstfy.publish("/api/ns/q", "x").await;
    let url = format!("{}/v1/queues/ns~q/config", lmstfy.native);
    let configured = lmstfy.http.put(url).body(r#"{"max_jobs":2}"#).send().await.unwrap();
    assert!(configured.status().is_success(), "{configured:?}");
    lmstfy.publish("/api/ns/q", "x").await;
    let refused = lmstfy.ask("PUT", "/api/ns/q/bulk", "[1,2,3]").await;
    assert!(refused.status == 500 && refused.body.contains("max"), "{refused:?}");
    assert_eq!(lmstfy.sizes("q").await, [2, 0, 0, 0]);
}
