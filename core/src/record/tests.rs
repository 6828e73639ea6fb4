use super::*;
use crate::{Backoff, UnixMs};
use proptest::prelude::*;
use std::string::ToString;
use std::{format, vec};

fn plain() -> Record {
    Record {
        metadata: Metadata { published: UnixMs(1_700_000_000_000), ..Metadata::default() },
        body: Bytes::from_static(b"hello"),
        ..Record::default()
    }
}

fn full() -> Record {
    Record {
        has_ttl: true,
        lost_delay_ms: Some(90_000),
        dedup: Some("order:ü".into()),
        priority: 7,
        attempts: Some(12),
        metadata: Metadata {
            published: UnixMs(1_700_000_000_000),
            content_type: Some("application/json".into()),
            headers: vec![("a".into(), "1".into()), ("a".into(), "2".into())],
            backoff: Some(Backoff::Ladder(vec![15_000, 180_000])),
            trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok(),
        },
        body: "ab".repeat(2_000).into(),
    }
}

fn read(stored: &[u8]) -> Result<Record, RecordError> {
    Record::decode(&Bytes::copy_from_slice(stored), BODY_LIMIT)
}

fn newer(stored: &[u8]) -> bool {
    matches!(read(stored), Err(RecordError::Newer { .. }))
}

fn records() -> impl Strategy<Value = Record> {
    let backoff = prop_oneof![
        Just(Backoff::None),
        any::<u64>().prop_map(|ms| Backoff::Fixed { ms }),
        any::<(u64, u64, u8)>().prop_map(|(first_ms, cap_ms, jitter_percent)| Backoff::Exponential {
            first_ms,
            cap_ms,
            jitter_percent
        }),
        prop::collection::vec(any::<u64>(), 0..64).prop_map(Backoff::Ladder),
    ];
    let trace = any::<([u8; 16], [u8; 8], u8, String)>()
        .prop_map(|(trace_id, parent_id, flags, state)| Trace { trace_id, parent_id, flags, state });
    let headers = prop::collection::vec(any::<(String, String)>(), 0..4);
    let metadata =
        (any::<u64>(), any::<Option<String>>(), headers, prop::option::of(backoff), prop::option::of(trace));
    let metadata = metadata.prop_map(|(published, content_type, headers, backoff, trace)| Metadata {
        published: UnixMs(published),
        content_type,
        headers,
        backoff,
        trace,
    });
    let body =
        prop_oneof![prop::collection::vec(any::<u8>(), 0..3_000), prop::collection::vec(0..3u8, 0..9_000)];
    let head = (
        any::<bool>(),
        prop::option::of(0..=99_999_999u64),
        prop::option::of("[ -~ä]{1,32}"),
        0..=9u8,
        prop::option::of(1..=999u16),
    );
    (head, metadata, body).prop_map(
        |((has_ttl, lost_delay_ms, dedup, priority, attempts), metadata, body)| Record {
            has_ttl,
            lost_delay_ms,
            dedup,
            priority,
            attempts,
            metadata,
            body: body.into(),
        },
    )
}

proptest! {
    #[test]
    fn records_read_back_in_both_forms(record in records(), off: bool) {
        let compression = if off { Compression::Off } else { Compression::default() };
        let encoded = record.encode(compression).unwrap();
        prop_assert_eq!(read(&encoded.to_bytes()), Ok(record.clone()));
        let armoured = armour(&encoded.head, &encoded.rest).unwrap();
        prop_assert_eq!(read(armoured.as_bytes()), Ok(record));
        let head = Head::decode(armoured.as_bytes()).unwrap();
        let (head, rest) = armoured.as_bytes().split_at(head.len());
        prop_assert_eq!(armour(head, rest), Ok(armoured.clone()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = read(&bytes);
        let _ = armour(&bytes, &bytes);
    }

    #[test]
    fn any_bytes_after_a_head_are_read_or_refused(
        flags in 0..32u8,
        metadata_len in 0..24usize,
        rest in prop::collection::vec(any::<u8>(), 0..80),
        armoured: bool,
    ) {
        let head = format!("112{metadata_len:03x}{:02x}0000", flags & !6);
        let rest = if armoured { rest.iter().map(|byte| b'A' + byte % 26).collect() } else { rest };
        let _ = read(&[head.as_bytes(), &rest].concat());
    }

    #[test]
    fn damaged_and_cut_records_are_read_or_refused(record in records(), at: usize, byte: u8, text: bool) {
        let encoded = record.encode(Compression::Over { bytes: 10 }).unwrap();
        let mut stored = encoded.to_bytes().to_vec();
        if text {
            stored = armour(&encoded.head, &encoded.rest).unwrap().into_bytes();
        }
        let at = at % stored.len();
        let _ = read(&stored[..at]);
        stored[at] ^= byte;
        let _ = read(&stored);
    }
}

#[test]
fn the_layout_is_pinned_byte_by_byte() {
    let encoded = plain().encode(Compression::default()).unwrap();
    assert_eq!(encoded.head, b"112006000000");
    assert_eq!(encoded.rest, b"\x80\xd0\x95\xff\xbc\x31hello");
    assert_eq!(armour(&encoded.head, &encoded.rest).unwrap(), "112008080000gNCV_7wxaGVsbG8");

    let encoded = full().encode(Compression::Over { bytes: 1 << 20 }).unwrap();
    assert_eq!(encoded.head, "1300440770120009000008order:ü".as_bytes());
    let metadata = b"\x80\xd0\x95\xff\xbc\x31\x01\x10application/json\x02\x01a\x011\x01a\x012\
        \x01\x03\x02\x98\x75\xa0\xfe\x0a\
        \x01\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36\
        \x00\xf0\x67\xaa\x0b\xa9\x02\xb7\x01\x00";
    assert_eq!(encoded.rest[..0x44], metadata[..]);
}

#[test]
fn a_job_without_options_has_little_metadata() {
    let encoded = plain().encode(Compression::default()).unwrap();
    assert!(Head::decode(&encoded.head).unwrap().metadata_len <= 12);
    let body: Bytes = vec![b'x'; 100].into();
    let whole = Record { body, ..plain() }.encode(Compression::default()).unwrap().to_bytes();
    assert!(whole.len() <= 124, "{}", whole.len());
}

#[test]
fn a_plain_body_is_not_copied() {
    let stored = plain().encode(Compression::Off).unwrap().to_bytes();
    let body = Record::decode(&stored, BODY_LIMIT).unwrap().body;
    assert_eq!(body.as_ptr(), stored[stored.len() - 5..].as_ptr());
}

#[test]
fn a_body_is_compressed_only_where_that_helps() {
    let compressed = |record: &Record, compression| {
        Head::decode(&record.encode(compression).unwrap().head).unwrap().compressed
    };
    assert!(compressed(&full(), Compression::default()));
    assert!(!compressed(&full(), Compression::Off));
    assert!(!compressed(&full(), Compression::Over { bytes: 4_000 }));
    assert!(!compressed(&plain(), Compression::Over { bytes: 0 }));
    let huge = Record { body: vec![0; BODY_LIMIT + 1].into(), ..plain() };
    assert!(!compressed(&huge, Compression::default()));
}

#[test]
fn a_declared_size_is_checked_before_it_is_believed() {
    let stored = full().encode(Compression::default()).unwrap().to_bytes();
    assert_eq!(Record::decode(&stored, 3_999), Err(RecordError::BodyTooLarge { bytes: 4_000, limit: 3_999 }));
    assert!(Record::decode(&stored, 4_000).is_ok());
    for size in [0u32, 1, 100, u32::MAX] {
        let stored = [b"112000100000".as_slice(), &size.to_le_bytes(), b"\x50hello"].concat();
        assert!(matches!(read(&stored), Err(RecordError::Unreadable { .. })), "{size}");
    }
    let stored = [b"112000100000".as_slice(), &5u32.to_le_bytes(), b"\x50hello"].concat();
    assert_eq!(read(&stored).unwrap().body, "hello");
}

#[test]
fn every_cut_within_head_or_metadata_is_noticed() {
    let stored = full().encode(Compression::default()).unwrap().to_bytes();
    for len in 0..stored.len() {
        assert!(matches!(read(&stored[..len]), Err(RecordError::Unreadable { .. })), "{len}");
    }
}

#[test]
fn what_a_newer_version_writes_is_told_from_damage() {
    for head in ["2", "9whatever", "112000200000", "112000400000", "112000800000", "199fffe00000"] {
        assert!(newer(head.as_bytes()), "{head}");
    }
    for head in [
        "",
        "0",
        "{\"a\":1}     ",
        "1120000000",
        "1120000g0000",
        "113000000000",
        "112001000000",
        "1 2000000000",
    ] {
        assert!(matches!(read(head.as_bytes()), Err(RecordError::Unreadable { .. })), "{head}");
    }
    assert!(read(b"112000000000").is_ok());
}

#[test]
fn metadata_grows_at_its_end_only() {
    let bytes = full().metadata.encode().unwrap();
    let longer = [bytes.as_slice(), b"\x07later"].concat();
    assert_eq!(Metadata::decode(&longer), Ok(full().metadata));
    assert_eq!(Metadata::decode(b""), Ok(Metadata::default()));
    assert_eq!(Metadata::decode(b"\x05\x00\x00").unwrap().published, UnixMs(5));
    assert_eq!(
        Metadata::decode(b"\x05\x00\x00\x01\x04\x01\x02"),
        Err(RecordError::Newer { what: "its backoff" })
    );
    assert_eq!(
        Metadata::decode(b"\x05\x00\x00\x01\x01\x09").unwrap().backoff,
        Some(Backoff::Fixed { ms: 9 })
    );
    assert!(Metadata::decode(b"\x05\x00\xff\xff\xff\xff\x0f").is_err());
}

#[test]
fn fields_without_room_are_refused_with_their_bounds() {
    let refused = |record: Record| record.encode(Compression::Off).unwrap_err().to_string();
    assert_eq!(
        refused(Record { priority: 10, ..plain() }),
        "the priority of a job cannot be 10: it must be 0 to 9"
    );
    for attempts in [0, 1_000] {
        assert!(refused(Record { attempts: Some(attempts), ..plain() }).contains("1 to 999"));
    }
    assert!(refused(Record { lost_delay_ms: Some(100_000_000), ..plain() }).contains("27 hours"));
    for dedup in [String::new(), "k".repeat(65)] {
        assert!(refused(Record { dedup: Some(dedup), ..plain() }).contains("1 to 64 bytes"));
    }
}

#[test]
fn the_longest_metadata_fits_armoured() {
    let with_header = |len| {
        let metadata = Metadata { headers: vec![("k".into(), "v".repeat(len))], ..plain().metadata };
        Record { metadata, ..plain() }.encode(Compression::Off)
    };
    let longest = with_header(3_071 - 12).unwrap();
    assert_eq!(Head::decode(&longest.head).unwrap().metadata_len, 3_071);
    let armoured = armour(&longest.head, &longest.rest).unwrap();
    assert_eq!(Head::decode(armoured.as_bytes()).unwrap().metadata_len, 4_095);
    assert_eq!(with_header(3_071 - 11), Err(RecordError::MetadataTooLong { bytes: 3_072, limit: 3_071 }));
}
