use bytes::Bytes;
use delayline_core::{
    BODY_LIMIT, Backoff, Compression, Head, Metadata, Record, RecordError, Trace, UnixMs, armour,
};

use super::input::Input;
use super::span::waits;

const SMALL: usize = 1 << 10;
const METADATA: usize = 3_071;

/// Bytes read as a record stay the same record when it is written again, in whichever form; none takes more memory than
/// its reader allows; and what is put together here reads back as it was.
///
/// # Panics
/// If not.
pub fn record(bytes: &[u8]) {
    let stored = Bytes::copy_from_slice(bytes);
    foreign(&stored);
    own(&mut Input::new(bytes));
}

fn foreign(stored: &Bytes) {
    let head = Head::decode(stored);
    if let Ok(head) = &head {
        let written = head.encode().expect("what was read is in range");
        assert_eq!(written.len(), head.len());
        assert_eq!(Head::decode(&written).as_ref(), Ok(head));
    }
    for limit in [0, SMALL, BODY_LIMIT] {
        match Record::decode(stored, limit) {
            Ok(record) => {
                let head = head.as_ref().expect("a record has a head");
                assert!(!head.compressed || record.body.len() <= limit);
                assert!(head.compressed || record.body.len() <= stored.len());
                record.metadata.backoff.iter().for_each(waits);
                written(&record, head.metadata_len > METADATA);
                armoured(stored, head, &record, limit);
            }
            Err(RecordError::BodyTooLarge { bytes, limit: said }) => assert!(bytes > limit && said == limit),
            Err(error) => assert!(error.to_string().len() < 1_000, "a short complaint"),
        }
    }
    let half = stored.len() / 2;
    if let Ok(text) = armour(&stored[..half], &stored[half..]) {
        assert!(text.len() <= 2 * stored.len() + 16);
    }
}

/// Metadata may be longer here than a writer makes it, since it is not to be armoured.
fn written(record: &Record, long: bool) {
    for compression in [Compression::Off, Compression::Over { bytes: 0 }, Compression::default()] {
        let encoded = match record.encode(compression) {
            Err(RecordError::MetadataTooLong { .. }) if long => return,
            encoded => encoded.expect("what was read is in range"),
        };
        let limit = record.body.len();
        assert_eq!(Record::decode(&encoded.to_bytes(), limit).as_ref(), Ok(record));
        let text = armour(&encoded.head, &encoded.rest).expect("short enough for either form");
        assert_eq!(Record::decode(&Bytes::from(text.clone()), limit).as_ref(), Ok(record));
        let (head, rest) = text.as_bytes().split_at(encoded.head.len());
        assert_eq!(armour(head, rest), Ok(text.clone()), "armour of armour is the same");
    }
}

fn armoured(stored: &Bytes, head: &Head, record: &Record, limit: usize) {
    match armour(&stored[..head.len()], &stored[head.len()..]) {
        Ok(text) => assert_eq!(Record::decode(&Bytes::from(text), limit).as_ref(), Ok(record)),
        Err(error) => {
            assert!(head.metadata_len > METADATA, "{error}");
        }
    }
}

fn own(input: &mut Input<'_>) {
    let metadata = Metadata {
        published: UnixMs(input.number()),
        content_type: input.flag().then(|| input.text(40)),
        headers: (0..input.below(5)).map(|_| (input.text(20), input.text(200))).collect(),
        backoff: input.flag().then(|| backoff(input)),
        trace: input.flag().then(|| trace(input)),
    };
    let record = Record {
        has_ttl: input.flag(),
        lost_delay_ms: input.flag().then(|| input.number() % 100_000_000),
        dedup: Some(input.text(64)).filter(|key| (1..=64).contains(&key.len())),
        priority: input.below(10),
        attempts: Some(u16::try_from(input.number() % 1_000).unwrap_or(0)).filter(|attempts| *attempts > 0),
        metadata,
        body: {
            let times = usize::from(input.below(8)) + 1;
            Bytes::from(input.rest().repeat(times))
        },
    };
    written(&record, false);
}

fn backoff(input: &mut Input<'_>) -> Backoff {
    match input.below(4) {
        0 => Backoff::None,
        1 => Backoff::Fixed { ms: input.number() },
        2 => Backoff::Exponential {
            first_ms: input.number(),
            cap_ms: input.number(),
            jitter_percent: input.byte(),
        },
        _ => Backoff::Ladder((0..input.below(8)).map(|_| input.number()).collect()),
    }
}

fn trace(input: &mut Input<'_>) -> Trace {
    let (trace_id, parent_id) = (u128::from(input.number()) + 1, input.number() | 1);
    Trace {
        trace_id: trace_id.to_be_bytes(),
        parent_id: parent_id.to_be_bytes(),
        flags: input.byte(),
        state: input.text(100),
    }
}
