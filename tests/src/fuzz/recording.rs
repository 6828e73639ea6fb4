use std::sync::{Arc, Mutex};

use delayline_core::recording::{Recorded, Replay, Sink};
use delayline_core::{Config, Identity, Millis, Shards, UnixMs};

use super::input::Input;

const MAGIC: &[u8] = b"delayline\0";
const CHECKPOINT: u64 = 2;
const ORIGIN: UnixMs = UnixMs(1_763_700_000_000);

/// A recording, or what follows the making of an engine in one, is read to its end or to where it is damaged, and nothing
/// comes after that; no step is made of nothing. States of an engine are left out: they are trusted.
///
/// # Panics
/// If not.
pub fn recording(bytes: &[u8]) {
    if bytes.starts_with(MAGIC) {
        read(bytes);
    } else {
        let mut input = Input::new(bytes);
        let mut made = made(&mut input);
        while !input.is_empty() {
            let frame = input.bytes(u8::MAX - 1);
            put_number(&mut made, frame.len() as u64);
            made.extend_from_slice(frame);
        }
        read(&made);
    }
}

/// A recording that ends when its engine is made.
fn made(input: &mut Input<'_>) -> Vec<u8> {
    let tape = Tape::default();
    let config = Config {
        shards: Shards::new(u16::from(input.below(3)) + 1).expect("few"),
        pending_jobs: 4,
        pending_requests: 4,
        ..Config::default()
    };
    let engine = Recorded::new(config, Identity(0x5eed), Millis(0), Some(Box::new(tape.clone())));
    drop(engine.expect("a config"));
    let begun = tape.0.lock().expect("a tape").clone();
    [Recorded::header(ORIGIN), begun].concat()
}

fn read(bytes: &[u8]) {
    if has_checkpoint(bytes) {
        return;
    }
    let mut replay = match Replay::open(bytes) {
        Ok(replay) => replay,
        Err(error) => return assert!(error.to_string().len() < 1_000, "a short complaint"),
    };
    let (mut steps, mut is_over) = (0, false);
    for step in replay.by_ref() {
        assert!(!is_over, "{step:?} comes after the damage");
        steps += 1;
        assert!(steps <= bytes.len(), "more steps than bytes");
        match step {
            Ok(step) => {
                for line in step.heard.iter().chain(&step.decided) {
                    assert!(!line.to_string().is_empty());
                }
            }
            Err(damaged) => {
                assert!(damaged.to_string().contains("recording"));
                is_over = true;
            }
        }
    }
    assert!(replay.next().is_none());
}

fn has_checkpoint(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(MAGIC.len() + 2..).unwrap_or_default();
    while let Some((len, after)) = take_number(rest) {
        if take_number(after).is_some_and(|(kind, _)| kind == CHECKPOINT) {
            return true;
        }
        let Some(next) = usize::try_from(len).ok().and_then(|len| after.get(len..)) else { break };
        rest = next;
    }
    false
}

/// A number in LEB128, and what follows it.
fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = bytes.iter().position(|byte| *byte < 0x80)? + 1;
    let number = bytes[..len].iter().rev().try_fold(0_u64, |number, byte| {
        number.checked_mul(128).map(|number| number | u64::from(byte & 0x7f))
    });
    Some((number?, &bytes[len..]))
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or(0));
}

/// All of a recording.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Sink for Tape {
    fn put(&mut self, bytes: &[u8], _is_fresh: bool) -> bool {
        self.0.lock().expect("a tape").extend_from_slice(bytes);
        false
    }
}
