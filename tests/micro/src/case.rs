use std::hint::black_box;

use bytes::Bytes;
use delayline_core::wire::{Form, Value, decode, encode};
use delayline_core::{
    BODY_LIMIT, Command, Compression, Keyspace, Kind, Millis, Prefix, Record, Shards, Wheel,
};

use crate::load::HORIZON_MS;
use crate::{Life, Load, Words, commands, granted, published, record};

/// How many timers wait beside those that a case is about.
const WAITING: usize = 20_000;
/// The most timers that a case inserts or cancels.
const MOST: usize = 4_000;
/// The most replies that a case decodes.
const MOST_VALUES: usize = 20;

/// A step whose instructions are counted.
#[derive(Clone, Copy)]
pub struct Case {
    /// What the step is, as `wheel insert`.
    pub name: &'static str,
    /// How many steps are counted; so many and twice as many are run, and the difference is theirs.
    pub steps: usize,
    /// Does so many steps, at most twice those. What it does before them does not depend on how many they are.
    pub run: fn(usize),
}

/// All cases.
pub fn all() -> [Case; 12] {
    [
        Case { name: "wheel insert", steps: 2_000, run: insert },
        Case { name: "wheel cancel", steps: 2_000, run: cancel },
        Case { name: "wheel next", steps: 2_000, run: next },
        Case { name: "wheel expire", steps: 10_000, run: expire },
        Case { name: "record encode, 100 bytes", steps: 1_000, run: encode_record },
        Case { name: "record decode, 100 bytes", steps: 1_000, run: decode_record },
        Case { name: "wire encode publish of 100", steps: 10, run: encode_publish },
        Case { name: "wire encode settle of 100", steps: 10, run: encode_settle },
        Case { name: "wire decode publish of 100", steps: 10, run: decode_published },
        Case { name: "wire decode reserve of 100", steps: 10, run: decode_granted },
        Case { name: "engine life of 1", steps: 500, run: |steps| live(1, steps, 1_000) },
        Case { name: "engine life of 100", steps: 20, run: |steps| live(100, steps, 40) },
    ]
}

fn load() -> Load<Wheel<u64>> {
    let mut load = Load::new(Wheel::new(Millis(0)), WAITING);
    load.choose(MOST);
    load
}

fn insert(steps: usize) {
    let mut load = load();
    // In places that others left: no memory is asked for.
    load.cancel(MOST);
    load.plan(MOST);
    load.insert(steps);
    black_box(load);
}

fn cancel(steps: usize) {
    let mut load = load();
    load.cancel(steps);
    black_box(load);
}

fn next(steps: usize) {
    load().next(steps);
}

fn expire(steps: usize) {
    let mut load = Load::new(Wheel::new(Millis(0)), WAITING);
    for _ in 0..steps {
        assert!(black_box(load.timers.pop_expired(Millis(HORIZON_MS))).is_some(), "nothing is due");
    }
    black_box(load);
}

fn encode_record(steps: usize) {
    let record = record(100);
    for _ in 0..steps {
        let _ = black_box(black_box(&record).encode(Compression::Off).map(|encoded| encoded.to_bytes()));
    }
}

fn decode_record(steps: usize) {
    let stored = stored();
    for _ in 0..steps {
        assert!(black_box(Record::decode(black_box(&stored), BODY_LIMIT)).is_ok(), "a record");
    }
}

fn encode_publish(steps: usize) {
    let [publish, ..] = commands(100, &stored());
    encode_often(&publish, steps);
}

fn encode_settle(steps: usize) {
    let [.., settle] = commands(100, &stored());
    encode_often(&settle, steps);
}

fn encode_often(command: &Command, steps: usize) {
    let keys = Keyspace::new(&Prefix::default(), Shards::default());
    let mut words = Words(Vec::with_capacity(1 << 16));
    for _ in 0..steps {
        words.0.clear();
        encode(&keys, black_box(command), Form::Sha, None, &mut words);
        black_box(&words);
    }
}

fn decode_published(steps: usize) {
    decode_often(Kind::Publish, &published(100), steps);
}

fn decode_granted(steps: usize) {
    decode_often(Kind::Reserve, &granted(100, &stored()), steps);
}

fn decode_often(kind: Kind, value: &Value, steps: usize) {
    let mut values = vec![value.clone(); MOST_VALUES];
    for value in values.drain(..steps) {
        assert!(black_box(decode(kind, value)).time().is_some(), "a reply");
    }
}

fn live(batch: usize, batches: usize, most: usize) {
    let mut script = Life::learn(batch, most);
    Life::new(batch).play(batches, &mut script);
}

fn stored() -> Bytes {
    record(100).encode(Compression::Off).expect("a small record").to_bytes()
}
