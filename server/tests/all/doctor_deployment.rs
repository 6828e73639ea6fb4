//! What the doctor finds wrong with a deployment: its config, its shards' agenda, index and lease.

use std::collections::BTreeMap;

use delayline_tokio::Client;
use delayline_tokio::redis::{self, cmd};

use crate::redis_server::RedisServer;
use crate::ward::{KEYS, TAG, Ward, key, types, wrong};

#[tokio::test]
async fn a_queue_that_the_index_or_the_agenda_lost_is_found_again() {
    let mut ward = Ward::new().await;
    let (agenda, queues) = (format!("{TAG}agenda"), format!("{TAG}queues"));
    ward.damaged("not in the index".into(), "meta", &[&[b"HDEL", queues.as_bytes(), b"N"]]);
    ward.damaged("not on the agenda".into(), "meta", &[&[b"ZREM", agenda.as_bytes(), b"Q"]]);
    for late in ["inf", "9999999999998", "1e300"] {
        ward.damaged(
            format!("on the agenda at {late}"),
            "meta",
            &[&[b"ZADD", agenda.as_bytes(), late.as_bytes(), b"Q"]],
        );
    }
    for all in [&["HDEL", &*queues][..], &["ZREM", &*agenda]] {
        ward.damaged(
            format!("{all:?} beside a meta without born"),
            "meta",
            &[
                &[b"HDEL", b"K", b"born"],
                &[all[0].as_bytes(), all[1].as_bytes(), if all[0] == "HDEL" { b"N" } else { b"Q" }],
            ],
        );
    }
    ward.is_mended().await;
}

#[tokio::test]
async fn what_a_shard_keeps_is_mended() {
    let mut ward = Ward::new().await;
    let sorted: (&str, Vec<&[u8]>) = ("sorted set", vec![b"ZADD", b"K", b"1", b"x"]);
    let mut bad: Vec<(String, Vec<Vec<Vec<u8>>>)> = Vec::new();
    let own = |words: &[&[u8]], key: &str| -> Vec<Vec<u8>> {
        words.iter().map(|word| if *word == b"K" { key.as_bytes().to_vec() } else { word.to_vec() }).collect()
    };
    for (name, ought) in [("agenda", "sorted set"), ("queues", "hash"), ("lease", "string")] {
        let key = format!("{TAG}{name}");
        for (kind, words) in types().into_iter().chain([sorted.clone()]) {
            if !kind.contains(ought) {
                bad.push((
                    format!("{name} is a {kind}"),
                    vec![own(&[b"UNLINK", b"K"], &key), own(&words, &key)],
                ));
            }
        }
    }
    for text in [
        "",
        "x",
        "AAAAAAAAAAA",
        "AAAAAAAAAAA x",
        "AAAAAAAAAAA 9999999999999",
        " 1",
        "AAAAAAAAAAA -1",
        "\u{e9}\0 1",
    ] {
        bad.push((
            format!("the lease is {text:?}"),
            vec![own(&[b"SET", b"K", text.as_bytes()], &format!("{TAG}lease"))],
        ));
    }
    for member in ["", "q", "x", "q#", "q\u{e9}", "qa b"] {
        bad.push((
            format!("the agenda has {member:?}"),
            vec![own(&[b"ZADD", b"K", b"1", member.as_bytes()], &format!("{TAG}agenda"))],
        ));
        bad.push((
            format!("the index has {member:?}"),
            vec![own(&[b"HSET", b"K", format!("{member} ").as_bytes(), b""], &format!("{TAG}queues"))],
        ));
    }
    for score in ["inf", "-inf", "-1", "1.5", "1e300", "99999999999999"] {
        bad.push((
            format!("the agenda has sound at {score}"),
            vec![own(&[b"ZADD", b"K", score.as_bytes(), b"qsound"], &format!("{TAG}agenda"))],
        ));
    }
    for (what, commands) in bad {
        for words in &commands {
            ward.does(words);
        }
        let (code, findings) = ward.doctor(&["--repair"]).await;
        assert_eq!(code, Some(0), "{what}: {:#?}", wrong(&findings));
        assert!(findings.iter().any(|finding| finding["status"] == "mended"), "{what}: {findings:#?}");
        let (code, findings) = ward.doctor(&[]).await;
        assert_eq!(code, Some(0), "{what}: {:#?}", wrong(&findings));
    }
}

#[tokio::test]
async fn the_config_of_a_deployment_is_told_from_its_keys() {
    let server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "no"]).await;
    let client = Client::builder().shards(4).connect(&server.url()).await.unwrap();
    for i in 0..20 {
        client.bytes(format!("queue-{i}")).unwrap().publish_bytes("x").await.unwrap();
    }
    client.close().await;
    let redis = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut ward = Ward { server, redis, damage: BTreeMap::new() };
    let config = "{dl}:config";
    let fixed: BTreeMap<String, String> = ward.ask(cmd("HGETALL").arg(config));
    let mut bad: Vec<(String, Vec<Vec<u8>>)> = vec![("gone".into(), vec![])];
    for field in ["shards", "layout"] {
        for value in ["", "x", "0", "-1", "1.5", "99999", "\u{e9}"]
            .into_iter()
            .filter(|value| field == "shards" || *value != "99999")
        {
            bad.push((
                format!("{field} is {value:?}"),
                ["HSET", config, field, value].map(|word| word.as_bytes().to_vec()).into(),
            ));
        }
        bad.push((
            format!("{field} is gone"),
            ["HDEL", config, field].map(|word| word.as_bytes().to_vec()).into(),
        ));
    }
    for (kind, words) in types().into_iter().filter(|(kind, _)| *kind != "hash") {
        let words = words
            .into_iter()
            .map(|word| if word == b"K" { config.as_bytes() } else { word }.to_vec())
            .collect();
        bad.push((format!("it is a {kind}"), words));
    }
    for (what, words) in bad {
        if words.first().is_none_or(|name| !name.starts_with(b"H")) {
            ward.does(&["UNLINK", config]);
        }
        if !words.is_empty() {
            ward.does(&words);
        }
        let before = ward.dump();
        let (code, findings) = ward.doctor(&[]).await;
        assert_eq!(code, Some(1), "{what}: {findings:#?}");
        assert!(
            wrong(&findings)
                .iter()
                .any(|finding| finding["detail"].as_str().unwrap().starts_with("deployment")),
            "{what}: {findings:#?}"
        );
        assert!(before == ward.dump(), "{what}: a doctor that only looks fixes another number of shards");
        let (code, findings) = ward.doctor(&["--repair"]).await;
        assert_eq!(code, Some(0), "{what}: {:#?}", wrong(&findings));
        let mut mended: BTreeMap<String, String> = ward.ask(cmd("HGETALL").arg(config));
        // Whoever lives through this learns by another birth that it is to look again.
        let born = mended.insert("born".to_owned(), fixed["born"].clone());
        assert_ne!(born.as_ref(), fixed.get("born"), "{what}");
        assert_eq!(mended, fixed, "{what}");
    }
}

#[tokio::test]
async fn what_a_killed_doctor_left_is_removed() {
    let mut ward = Ward::new().await;
    let name = "doctor-0123456789abcdef";
    for kept in KEYS {
        ward.does(&["COPY", &key("sound", kept), &key(name, kept)]);
    }
    ward.does(&["HSET", &key(name, "meta"), "born", "1763700000000000"]);
    ward.does(&["HSET", &format!("{TAG}queues"), name, ""]);
    let (code, findings) = ward.doctor(&[]).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    let (code, findings) = ward.doctor(&["--repair"]).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    assert!(ward.dump().keys().all(|key| !key.contains("doctor-")));
    let (code, findings) = ward.doctor(&[]).await;
    assert_eq!(code, Some(0), "{findings:#?}");
}
