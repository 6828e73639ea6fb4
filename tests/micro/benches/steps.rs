//! The core without any I/O: records, commands, replies, and the engine's part of jobs' lives, with what each allocates.
//!
//!     cargo bench -p delayline-micro --bench steps
#![forbid(unsafe_code)]

use bytes::Bytes;
use delayline_core::wire::{Form, decode, encode};
use delayline_core::{BODY_LIMIT, Compression, Keyspace, Kind, Prefix, Record, Shards};
use delayline_micro::{Life, Words, commands, granted, published, record};
use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// The sizes of bodies, and how they are written.
const BODIES: [(usize, Compression); 3] =
    [(100, Compression::Off), (16_384, Compression::Off), (16_384, Compression::Over { bytes: 1_024 })];
/// How many batches an engine lets live in one sample, so that what it does once does not count.
const BATCHES: usize = 20;

fn main() {
    divan::main();
}

#[divan::bench(args = BODIES)]
fn record_encode(bencher: Bencher, (bytes, compression): (usize, Compression)) {
    let record = record(bytes);
    bencher.bench_local(|| record.encode(compression).map(|encoded| encoded.to_bytes()));
}

#[divan::bench(args = BODIES)]
fn record_decode(bencher: Bencher, (bytes, compression): (usize, Compression)) {
    let stored = stored(bytes, compression);
    bencher.bench_local(|| Record::decode(black_box(&stored), BODY_LIMIT));
}

#[divan::bench(args = [1, 100])]
fn wire_encode_publish(bencher: Bencher, jobs: u16) {
    wire_encode(bencher, jobs, 0);
}

#[divan::bench(args = [1, 100])]
fn wire_encode_reserve(bencher: Bencher, jobs: u16) {
    wire_encode(bencher, jobs, 1);
}

#[divan::bench(args = [1, 100])]
fn wire_encode_settle(bencher: Bencher, jobs: u16) {
    wire_encode(bencher, jobs, 2);
}

/// Encodes the publish, the reserve or the settle of so many jobs into a buffer that is large enough.
fn wire_encode(bencher: Bencher, jobs: u16, which: usize) {
    let keys = Keyspace::new(&Prefix::default(), Shards::default());
    let command = &commands(jobs, &stored(100, Compression::Off))[which];
    let mut words = Words(Vec::with_capacity(1 << 16));
    bencher.counter(ItemsCount::new(jobs)).bench_local(|| {
        words.0.clear();
        encode(&keys, black_box(command), Form::Sha, None, &mut words);
    });
}

#[divan::bench(args = [1, 100])]
fn wire_decode_publish(bencher: Bencher, jobs: u16) {
    let value = published(jobs);
    let bencher = bencher.counter(ItemsCount::new(jobs)).with_inputs(|| value.clone());
    bencher.bench_local_values(|value| decode(Kind::Publish, value));
}

#[divan::bench(args = [1, 100])]
fn wire_decode_reserve(bencher: Bencher, jobs: u16) {
    let value = granted(jobs, &stored(100, Compression::Off));
    let bencher = bencher.counter(ItemsCount::new(jobs)).with_inputs(|| value.clone());
    bencher.bench_local_values(|value| decode(Kind::Reserve, value));
}

/// Publish, grant and acknowledgement of batches, one after the other.
#[divan::bench(args = [1, 10, 100])]
fn engine_life(bencher: Bencher, batch: usize) {
    let script = Life::learn(batch, BATCHES);
    bencher
        .counter(ItemsCount::new(batch * BATCHES))
        .with_inputs(|| (Life::new(batch), script.clone()))
        .bench_local_refs(|(life, script)| life.play(BATCHES, script));
}

fn stored(bytes: usize, compression: Compression) -> Bytes {
    record(bytes).encode(compression).expect("a small record").to_bytes()
}
