//! What the doctor finds in queues, and mends: every key and every field is given bad values, a queue for each.

use std::time::Duration;

use delayline_tokio::redis::{self, cmd};
use delayline_tokio::{Client, Counters, Reason, Verdict};

use crate::ward::{KEYS, Ward, key, types, wrong};

const NUMBERS: [&str; 8] = ["", "-1", "x", "1e9", "99999999999999999999", "1.5", " 1", "\u{e9}\0"];

#[tokio::test]
async fn a_sound_queue_is_found_sound() {
    let ward = Ward::new().await;
    let (code, findings) = ward.doctor(&["--thorough"]).await;
    assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
    let queues = findings.iter().find(|finding| finding["check"] == "queues").unwrap();
    assert!(queues["detail"].as_str().unwrap().contains("8 of 8 jobs in 1 queues"), "{queues}");
}

#[tokio::test]
async fn a_key_of_any_wrong_type_is_set_aside() {
    let mut ward = Ward::new().await;
    for name in KEYS {
        let is_hash = ["meta", "pool", "state"].contains(&name);
        let sorted: (&str, Vec<&[u8]>) = ("sorted set", vec![b"ZADD", b"K", b"1", b"ready"]);
        for (kind, words) in types().into_iter().chain([sorted]) {
            if kind == if is_hash { "hash" } else { "sorted set" } {
                continue;
            }
            ward.damaged(format!("{name} is a {kind}"), name, &[&[b"UNLINK", b"K"], &words]);
        }
    }
    ward.is_mended().await;
    let aside: Vec<String> = ward.ask(cmd("KEYS").arg("*broken:*"));
    assert_eq!(aside.len(), ward.damage.len(), "{aside:?}");
}

#[tokio::test]
async fn every_field_of_meta_is_mended() {
    let mut ward = Ward::new().await;
    let counters = Counters::default().named().map(|(name, _)| name);
    let others = [
        "born",
        "cfgver",
        "fence",
        "mean",
        "sessions",
        "exp",
        "big",
        "attempts",
        "retention",
        "max_jobs",
        "max_bytes",
    ];
    for field in counters.into_iter().chain(others) {
        for bad in NUMBERS {
            ward.damaged(
                format!("{field} is {bad:?}"),
                "meta",
                &[&[b"HSET", b"K", field.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    for field in ["lo", "w", "paused", "expire", "forward", "backoff", "sweep"] {
        for bad in ["x", "-1", "1e9", "\u{e9}\0", "none of these", "1 1 1", "99999999999999999999"] {
            ward.damaged(
                format!("{field} is {bad:?}"),
                "meta",
                &[&[b"HSET", b"K", field.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    for (field, bad) in [
        ("fence", "9007199254740993"),
        ("attempts", "1000"),
        ("lo", "9999999999999"),
        ("exp", "7"),
        ("big", "0"),
        ("published", "0"),
        ("acked", "1"),
        ("published", "1000"),
    ] {
        ward.damaged(
            format!("{field} is {bad:?}"),
            "meta",
            &[&[b"HSET", b"K", field.as_bytes(), bad.as_bytes()]],
        );
    }
    for field in ["born", "published", "lo", "exp", "big", "w"] {
        ward.damaged(format!("{field} is gone"), "meta", &[&[b"HDEL", b"K", field.as_bytes()]]);
    }
    for bad in ["", "x", "1", "1 x y", "-1 1 1 n", "1 1 1 z", "1 99999999999999999999 1 n"] {
        for verb in ["p0", "r0", "c0"] {
            let field = format!("sAAAAAAAAAAA{verb}");
            ward.damaged(
                format!("{field} is {bad:?}"),
                "meta",
                &[&[b"HSET", b"K", field.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    ward.is_mended().await;
}
/// How often each command was called, within scripts too.
fn calls(ward: &mut Ward) -> u64 {
    let stats: String = ward.ask(cmd("INFO").arg("commandstats"));
    let counts =
        stats.lines().filter_map(|line| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok());
    counts.sum()
}

#[tokio::test]
async fn a_big_deployment_is_looked_at_by_a_bounded_number_of_calls() {
    const QUEUES: u64 = 20;
    const FILL: &str = "for i = 1, 10000 do
        redis.call('HSET', KEYS[1], 'job' .. i, '112000000000' .. string.rep('x', 90))
        redis.call('ZADD', KEYS[2], 1763700000000 + i, 'job' .. i)
    end
    redis.call('HSET', KEYS[3], 'published', 10008)";
    let mut ward = Ward::new().await;
    let keys = ["pool", "due", "meta"].map(|name| key("sound", name));
    ward.ask::<()>(cmd("EVAL").arg(FILL).arg(3).arg(&keys));
    for _ in 0..QUEUES {
        ward.damaged("nothing".into(), "meta", &[]);
    }
    let before = calls(&mut ward);
    let (code, findings) = ward.doctor(&[]).await;
    assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
    let asked = calls(&mut ward) - before;
    println!("{asked} calls for {QUEUES} queues of 10,000 jobs");
    assert!(asked < QUEUES * 2_000, "{asked} calls");
    let told = findings.iter().find(|finding| finding["check"] == "queues").unwrap();
    assert!(told["detail"].as_str().unwrap().contains(" of 210168 jobs in 21 queues"), "{told}");
    assert!(told["detail"].as_str().unwrap().contains("a sample"), "{told}");
}

/// Publishes jobs of all kinds and serves them, until it is told to stop. What fails while the queue is broken is left.
async fn busy(url: String, stop: tokio::sync::watch::Receiver<bool>) -> u64 {
    let client = Client::connect(&url).await.unwrap();
    let queue = client.bytes("busy").unwrap();
    let mut done = 0;
    while !*stop.borrow() {
        for i in 0..20_u64 {
            let body = vec![b'x'; if i == 0 { 9000 } else { 10 }];
            let publish = queue.publish_bytes(body);
            let publish = if i % 3 == 0 { publish.ttl(Duration::from_secs(60)) } else { publish };
            let _ = publish.delay(Duration::from_millis(i % 4)).await;
        }
        for (i, job) in queue.take().count(20).await.unwrap_or_default().into_iter().enumerate() {
            let verdict = match i % 5 {
                0 => Verdict::Nack { after_ms: Some(5), reason: Reason::new("again") },
                1 => Verdict::Bury { reason: Reason::new("enough") },
                2 => Verdict::Snooze { after_ms: 3 },
                _ => Verdict::Ack,
            };
            done += u64::from(client.settle(job.lease, verdict).await.is_ok());
        }
    }
    client.close().await;
    done
}

#[tokio::test]
async fn a_queue_that_is_busy_is_found_sound_and_is_mended_meanwhile() {
    let mut ward = Ward::new().await;
    let (told, stop) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(busy(ward.server.url(), stop));
    crate::eventually("it works", async || {
        let mut redis = redis::Client::open(ward.server.url()).unwrap().get_connection().unwrap();
        let died: Option<u64> = cmd("ZCARD").arg(key("busy", "dead")).query(&mut redis).unwrap();
        died.filter(|died| *died > 20)
    })
    .await;
    for _ in 0..5 {
        let (code, findings) = ward.doctor(&["--thorough"]).await;
        assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
    }
    for (field, bad) in [("acked", "x"), ("lo", "x"), ("exp", "-1"), ("published", "1")] {
        ward.does(&["HSET", &key("busy", "meta"), field, bad]);
    }
    let (code, findings) = ward.doctor(&["--repair"]).await;
    told.send(true).unwrap();
    let done = working.await.unwrap();
    assert!(code == Some(0) && done > 0, "{:#?}", wrong(&findings));
    let (code, findings) = ward.doctor(&["--thorough"]).await;
    assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
}
