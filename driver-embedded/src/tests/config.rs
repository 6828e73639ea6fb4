use super::*;
use delayline_core::Backoff;

#[test]
fn configs_are_compared_and_set() {
    let mut bed = Bed::new();
    let config = QueueConfig {
        attempts: Some(3),
        backoff: Some(Backoff::Ladder(vec![])),
        bury_expired: true,
        ..QueueConfig::default()
    };
    let configure = |cfgver, config: &QueueConfig| Command::Configure {
        queue: queue(),
        cfgver: Some(cfgver),
        config: config.clone(),
    };
    let time = UnixMicros(bed.us);
    assert_eq!(bed.run(&configure(0, &config)), Reply::Configured { time, cfgver: 1 });
    let found = QueueConfig { backoff: Some(Backoff::None), ..config.clone() };
    assert_eq!(bed.run(&configure(0, &config)), Reply::ConfigConflict { time, cfgver: 1, found });
    assert_eq!(bed.meta("backoff").as_deref(), Some("none"));
    assert_eq!(bed.run(&configure(1, &QueueConfig::default())), Reply::Configured { time, cfgver: 2 });
    assert_eq!((bed.meta("attempts"), bed.meta("expire"), bed.meta("backoff")), (None, None, None));
    assert_eq!(bed.stats().born, Some(time));
}

#[test]
fn a_paused_queue_grants_nothing_and_resuming_wakes() {
    let mut bed = Bed::new();
    bed.store.subscribe(ALICE);
    bed.pause(true);
    bed.publish([entry("a", 0)]);
    let granted = bed.reserve(1);
    assert_eq!((granted.ids(), granted.open, granted.next), (vec![], false, None));
    assert_eq!(bed.notices(), []);
    let pause = Command::Pause { queue: queue(), cfgver: Some(7), paused: false };
    assert!(matches!(bed.run(&pause), Reply::PauseConflict { cfgver: 1, paused: true, .. }));
    bed.pause(false);
    assert_eq!(bed.notices(), [ready(ALICE)]);
    assert_eq!(bed.reserve(1).ids(), ["a"]);
}

#[test]
fn destroying_takes_everything_of_the_queue_that_was_meant() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0), entry("b", 0), entry("c", 9_000)]);
    let fence = bed.reserve(1).fence;
    let (born, time) = (UnixMicros(START_US), UnixMicros(bed.us));
    let destroy = |born| Command::Destroy { queue: queue(), born };
    assert_eq!(bed.run(&destroy(UnixMicros(1))), Reply::Gone { time });
    assert_eq!(bed.run(&destroy(born)), Reply::Destroyed { time, waiting: 2, leased: 1, dead: 0 });
    assert!(bed.dump().is_empty());
    assert_eq!(bed.run(&destroy(born)), Reply::Gone { time });
    assert_eq!(bed.settle("a", fence, Settlement::Ack), SettleOutcome::Gone);
}

#[test]
fn only_what_is_written_is_there() {
    let mut bed = Bed::new();
    bed.reserve(1);
    let dump = bed.dump();
    let keys: Vec<&str> = dump.keys().map(String::as_str).collect();
    assert_eq!(keys, ["{dl:0.0}:orders:meta", "{dl:0.0}:orders:waiting"]);
    let Some(Dumped::Hash(meta)) = dump.get("{dl:0.0}:orders:meta") else {
        panic!("no meta");
    };
    let session = format!("1 {} {START_US} {} ", START + 600_000, START + 30_001);
    let lane = format!("s{ALICE}r0");
    let want = [(lane.as_str(), session.as_str()), ("sessions", "1"), ("w", "1")];
    let want = want.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let have: Vec<_> = meta.iter().map(|(name, value)| (text(name), text(value))).collect();
    assert_eq!(have, want);
}

#[test]
fn old_sessions_are_swept_when_there_are_many() {
    let mut bed = Bed::new();
    for engine in 1..=65 {
        bed.reserve_by(Identity(engine), 1);
    }
    bed.tend();
    assert_eq!(bed.meta("sessions").as_deref(), Some("65"));
    bed.pass(599_999);
    bed.reserve_by(Identity(99), 1);
    bed.tend();
    assert_eq!(bed.meta("sessions").as_deref(), Some("66"));
    // A part a minute is looked at, and what ended 10 s before is dropped.
    bed.pass(70_000);
    bed.tend();
    assert_eq!(bed.meta("sessions").as_deref(), Some("1"));
}

#[test]
fn the_first_to_open_fixes_the_shards() {
    let mut store = Store::new(Shards::new(4).unwrap());
    for (time, shards) in [(1, 4), (2, 8)] {
        let (time, shards) = (UnixMicros(time), Shards::new(shards).unwrap());
        let reply = store.execute(time, &Command::Open { shards });
        let fixed = Shards::new(4).unwrap();
        assert_eq!(reply, Reply::Opened { time, layout: 1, shards: fixed, born: UnixMicros(1) });
    }
    let peek =
        Command::Peek { shard: Shard(4), engine: ALICE, entries: 1, lease_ms: 1, stay: true, queues: vec![] };
    assert!(matches!(store.execute(UnixMicros(1), &peek), Reply::Broken(_)));
}

#[test]
fn queues_are_named_page_by_page() {
    let mut bed = Bed::new();
    for name in ["b", "a", "c"] {
        let queue = name.parse().unwrap();
        bed.run(&Command::Pause { queue, cfgver: None, paused: false });
    }
    let mut page = |cursor| match bed.run(&Command::Queues { shard: Shard(0), cursor, count: 2 }) {
        Reply::Named { cursor, queues } => {
            (cursor, queues.iter().map(ToString::to_string).collect::<Vec<_>>().concat())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(page(0), (2, "ab".to_owned()));
    assert_eq!(page(2), (0, "c".to_owned()));
    assert_eq!(page(9), (0, String::new()));
}
