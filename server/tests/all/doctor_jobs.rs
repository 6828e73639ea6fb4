//! What the doctor finds wrong with jobs: their states, their records, and the places they are in.

use crate::ward::{JOBS, Ward};

#[tokio::test]
async fn every_broken_state_is_rebuilt() {
    let mut ward = Ward::new().await;
    let sound = "L17637000000001230002001000030017637000005000";
    let bad = [
        String::new(),
        "x".into(),
        "\u{e9}\0\u{e9}".into(),
        sound[..20].into(),
        sound.replace('L', "Q"),
        format!("{sound}99"),
        format!("{}zz0", &sound[..44]),
        format!("L{}", "x".repeat(60)),
        format!("{}ff{}0", &sound[..29], &sound[31..45]),
        "W".repeat(2000),
    ];
    for id in JOBS {
        for bad in &bad {
            ward.damaged(
                format!("state of {id} is {bad:?}"),
                "state",
                &[&[b"HSET", b"K", id.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    for id in ["held", "dead"] {
        ward.damaged(format!("state of {id} is gone"), "state", &[&[b"HDEL", b"K", id.as_bytes()]]);
    }
    ward.damaged("a state of no job".into(), "state", &[&[b"HSET", b"K", b"nobody", b"x"]]);
    ward.is_mended().await;
}

#[tokio::test]
async fn every_broken_record_and_place_is_mended() {
    let mut ward = Ward::new().await;
    for bad in ["", "x", "0120000", "112", "1zz00000000", "199fff000000", "11200002000000", "\u{e9}\0"] {
        for id in ["ready", "delayed", "again", "expiring", "large"] {
            ward.damaged(
                format!("pool has {bad:?} for {id}"),
                "pool",
                &[&[b"HSET", b"K", id.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    for id in JOBS {
        ward.damaged(format!("pool has no {id}"), "pool", &[&[b"HDEL", b"K", id.as_bytes()]]);
        ward.damaged(format!("due has {id} at inf"), "due", &[&[b"ZADD", b"K", b"inf", id.as_bytes()]]);
        for place in ["due", "leased", "dead"] {
            ward.damaged(
                format!("{place} lacks {id}"),
                place,
                &[&[b"ZADD", b"K", b"1", id.as_bytes()], &[b"ZREM", b"K", id.as_bytes()]],
            );
        }
    }
    for (place, id) in
        [("due", "ready"), ("leased", "held"), ("dead", "dead"), ("exp", "expiring"), ("big", "large")]
    {
        for score in ["inf", "-inf", "-1", "1.5", "1e300", "99999999999999", "0.1"] {
            ward.damaged(
                format!("{place} has {id} at {score}"),
                place,
                &[&[b"ZADD", b"K", score.as_bytes(), id.as_bytes()]],
            );
        }
        for stranger in ["", "no id", "\u{e9}", "a/b", "nobody", &"x".repeat(200)] {
            ward.damaged(
                format!("{place} has {stranger:?}"),
                place,
                &[&[b"ZADD", b"K", b"1", stranger.as_bytes()]],
            );
        }
    }
    for stranger in ["", "no id", "\u{e9}", "a/b", "#", &"x".repeat(200)] {
        ward.damaged(
            format!("pool has {stranger:?}"),
            "pool",
            &[&[b"HSET", b"K", stranger.as_bytes(), b"112000000000x"]],
        );
        ward.damaged(
            format!("waiting has {stranger:?}"),
            "waiting",
            &[&[b"ZADD", b"K", b"1", stranger.as_bytes()]],
        );
    }
    for score in ["inf", "-inf", "-1", "1.5", "1e300", "99999999999999"] {
        ward.damaged(
            format!("waiting since {score}"),
            "waiting",
            &[&[b"ZADD", b"K", score.as_bytes(), b"AAAAAAAAAAB"]],
        );
    }
    ward.damage.retain(|_, what| !is_sound_as_it_is(what));
    ward.is_mended().await;
}

/// A place that lacks a job which is elsewhere.
fn is_sound_as_it_is(what: &str) -> bool {
    let at_home = [
        ("due", &["again", "ready", "large", "expiring", "delayed", "other"][..]),
        ("leased", &["held"]),
        ("dead", &["dead"]),
    ];
    let lacks = what.split_once(" lacks ");
    lacks.is_some_and(|(place, id)| !at_home.iter().any(|(home, ids)| *home == place && ids.contains(&id)))
}
