use super::*;
use delayline_core::Metadata;

fn list() -> Forward {
    Forward::List("out".to_owned())
}

fn stream() -> Forward {
    Forward::Stream("out".to_owned())
}

fn forwarding(forward: Forward) -> Bed {
    let mut bed = Bed::new();
    bed.configure(QueueConfig { forward: Some(forward), ..QueueConfig::default() });
    bed
}

fn compressed(name: &str) -> Entry {
    let body = Bytes::from(vec![b'x'; 2_000]);
    let record = Record { body, ..Record::default() }.encode(Compression::default()).unwrap().to_bytes();
    Entry { record, ..entry(name, 0) }
}

#[test]
fn a_list_gets_bodies_in_the_order_of_their_due_times() {
    let mut bed = forwarding(list());
    bed.publish([entry("a", 20), entry("b", 10), compressed("z"), entry("later", 5_000)]);
    assert_eq!(bed.agenda(), Some(START));
    bed.pass(30);
    assert!(!bed.reserve(1).open);
    let reply = bed.tend_to(256, Some(list()));
    assert!(matches!(reply, Reply::Tended { forwarded: 2, next: Some(next), .. } if next == START + 5_001));
    let bodies = ["b", "a"].map(Bytes::from).to_vec();
    assert_eq!(bed.dump().get("out"), Some(&Dumped::List(bodies)));
    assert_eq!(bed.inspect("z").unwrap().state.unwrap().reason.as_str(), "not plain");
    assert!(bed.inspect("a").is_none());
    assert_eq!(bed.stats().counters.forwarded, 2);
}

#[test]
fn a_stream_gets_all_there_is_to_say_of_a_job() {
    let mut bed = forwarding(stream());
    let metadata = Metadata { published: UnixMs(5), ..Metadata::default() };
    let record = plain(&Record { metadata, body: Bytes::from_static(b"hi"), ..Record::default() });
    bed.publish([Entry { record, ..entry("a", 0) }, compressed("b")]);
    bed.tend_to(256, Some(stream()));
    let Some(Dumped::Stream(entries)) = bed.dump().remove("out") else {
        panic!("no stream");
    };
    let fields = |at: usize| entries[at].1.iter().map(|(name, value)| (text(name), value.clone()));
    let due = START.to_string();
    let want = [("id", "a"), ("due", &due), ("attempt", "1"), ("encoding", "identity"), ("meta", "\u{5}")];
    let want = want.into_iter().chain([("body", "hi")]);
    let want: Vec<_> = want.map(|(name, value)| (name.to_owned(), value.to_owned().into())).collect();
    assert_eq!(fields(0).collect::<Vec<(String, Bytes)>>(), want);
    assert_eq!(fields(1).nth(3).unwrap().1, "lz4");
    assert!(entries[0].0 < entries[1].0);
}

#[test]
fn a_destination_of_another_type_loses_nothing() {
    let mut bed = forwarding(list());
    bed.publish([entry("a", 0)]);
    bed.tend_to(256, Some(list()));
    bed.configure(QueueConfig { forward: Some(stream()), ..QueueConfig::default() });
    bed.publish([entry("b", 0)]);
    let retry = START + 10_000;
    let reply = bed.tend_to(256, Some(stream()));
    assert!(matches!(reply, Reply::Tended { forwarded: 0, next: Some(next), .. } if next == retry));
    assert!(bed.stats().forward_error.unwrap().starts_with("WRONGTYPE"));
    assert!(bed.inspect("b").is_some());
    bed.configure(QueueConfig { forward: Some(list()), ..QueueConfig::default() });
    bed.tend_to(256, Some(list()));
    assert_eq!((bed.stats().forward_error, bed.meta("forward_error").as_deref()), (None, Some("")));
    assert!(bed.inspect("b").is_none());
}

#[test]
fn who_does_not_know_the_destination_is_told_and_the_agenda_keeps_the_queue() {
    let mut bed = forwarding(list());
    bed.publish([entry("a", 0)]);
    for to in [None, Some(Forward::List("old".to_owned()))] {
        let reply = bed.tend_to(256, to);
        assert!(matches!(reply, Reply::Tended { forwarded: 0, forward: Some(to), .. } if to == list()));
        assert_eq!(bed.agenda(), Some(START + 10_000));
    }
    assert!(!bed.dump().contains_key("old"));
}

#[test]
fn a_paused_queue_forwards_nothing() {
    let mut bed = forwarding(list());
    bed.pause(true);
    bed.publish([entry("a", 0)]);
    assert!(matches!(bed.tend_to(256, Some(list())), Reply::Tended { forwarded: 0, next: None, .. }));
    bed.pause(false);
    assert_eq!(bed.agenda(), Some(START));
    assert!(matches!(bed.tend_to(256, Some(list())), Reply::Tended { forwarded: 1, .. }));
}

#[test]
fn tidying_leaves_what_waits_for_the_forwarder_on_the_agenda() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0)]);
    let fence = bed.reserve(1).fence;
    bed.configure(QueueConfig { forward: Some(list()), ..QueueConfig::default() });
    bed.settle_all(true, &[("a", fence, nack(0))]);
    assert_eq!(bed.agenda(), Some(START));
}
