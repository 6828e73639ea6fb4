use std::fmt::Display;
use std::str::FromStr;

use delayline_core::{Forward, Identity, JobId, JobIds, Prefix, QueueName, Reason, Shards, Trace, UnixMs};

use super::input::Input;

const LONGEST: usize = 128;
/// A namespace, `~`, and the name of a queue in it.
const LONGEST_QUEUE: usize = 255 + 1 + 255;
/// 160 characters, each escaped, and what to write instead.
const COMPLAINT: usize = 2_000;

/// A name is its text, and no longer than may be; a trace, a destination and an identity read back as they are written; ids that
/// are made sort by their making; a reason is cut, and only once.
///
/// # Panics
/// If not.
pub fn names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let names = [
        (kept::<QueueName>(&text), LONGEST_QUEUE),
        (kept::<Prefix>(&text), LONGEST),
        (kept::<JobId>(&text), LONGEST),
    ];
    for (name, longest) in names.into_iter().filter_map(|(name, longest)| Some((name?, longest))) {
        assert_eq!(name, text);
        assert!((1..=longest).contains(&name.len()));
    }
    for written in [kept::<Identity>(&text), kept::<Forward>(&text)].into_iter().flatten() {
        assert_eq!(written, text);
    }
    if let Some(written) = kept::<Trace>(&text) {
        assert_eq!(kept::<Trace>(&written), Some(written));
    }
    if let (Ok(queue), Some(shards)) =
        (text.parse::<QueueName>(), Shards::new(bytes.len().try_into().unwrap_or(1)))
    {
        assert!(shards.of(&queue).0 < shards.count());
    }
    let reason = Reason::new(&text);
    assert!(reason.as_str().len() <= Reason::MAX && text.starts_with(reason.as_str()));
    assert_eq!(Reason::new(reason.as_str()), reason);
    made(&mut Input::new(bytes));
}

/// What was read, written again.
fn kept<T: FromStr<Err: Display> + Display>(text: &str) -> Option<String> {
    match text.parse::<T>() {
        Ok(value) => Some(value.to_string()),
        Err(error) => {
            assert!(error.to_string().chars().count() < COMPLAINT, "a short complaint");
            None
        }
    }
}

fn made(input: &mut Input<'_>) {
    let (mut ids, mut last) = (JobIds::default(), None);
    while !input.is_empty() {
        let id = ids.next(UnixMs(input.number()), input.number());
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert!(last.is_none_or(|last| last < id), "ids sort by their making");
        last = Some(id);
    }
}
