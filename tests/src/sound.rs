use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::{Backoff, Counters, Forward, UnixMs};

use crate::{Contents, Dump};

/// The fields of `meta` that hold numbers and do not count; one that scripts cannot read is as if it were not there.
const NUMBERS: [&str; 9] =
    ["born", "cfgver", "retention", "max_jobs", "max_bytes", "fence", "mean", "exp", "big"];
const LATEST_MS: u64 = 9_999_999_999_999;

/// What a dump means to scripts at this time, without what means nothing.
///
/// A key of another type is empty, and so is what became of it; a number or a session that cannot be read is not there;
/// a session that was kept long enough may or may not have been swept, so neither it nor how many there are is compared.
#[must_use]
pub fn sound(dump: Dump, now: UnixMs) -> Dump {
    let mut sound: Dump = dump.into_iter().filter(|(key, contents)| is_kept(key, contents)).collect();
    // Scores that scripts take for the same came in their own order.
    for contents in sound.values_mut() {
        if let Contents::Sorted(members) = contents {
            members.sort_by(|(a, at), (b, bt)| (at, a).cmp(&(bt, b)));
        }
    }
    let metas: Vec<String> = sound.keys().filter(|key| key.ends_with(":meta")).cloned().collect();
    for key in metas {
        let [exp, big] = ["exp", "big"].map(|name| {
            let key = format!("{}{name}", key.trim_end_matches("meta"));
            match sound.get(&key) {
                Some(Contents::Sorted(members)) => members.len(),
                _ => 0,
            }
        });
        if let Some(Contents::Hash(fields)) = sound.remove(&key) {
            let fields = meta(fields, exp, big, now);
            if !fields.is_empty() {
                sound.insert(key, Contents::Hash(fields));
            }
        }
    }
    sound
}

fn is_kept(key: &str, contents: &Contents) -> bool {
    if !key.starts_with('{') {
        return true;
    }
    let Some((_, name)) = key.split_once("}:") else { return true };
    match name.rsplit(':').next() {
        _ if name.starts_with("broken:") => false,
        Some("meta" | "pool" | "state" | "queues" | "config") => matches!(contents, Contents::Hash(_)),
        Some("lease") => matches!(contents, Contents::Text(text) if is_lease(text)),
        _ => matches!(contents, Contents::Sorted(_)),
    }
}

fn is_lease(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).ok().and_then(|text| text.split_once(' '));
    text.is_some_and(|(engine, until)| {
        engine.parse::<delayline_core::Identity>().is_ok() && whole(until).is_some()
    })
}

fn meta(fields: BTreeMap<Bytes, Bytes>, exp: usize, big: usize, now: UnixMs) -> BTreeMap<Bytes, Bytes> {
    let counters = Counters::default().named().map(|(name, _)| name);
    let keep = |(field, value): (Bytes, Bytes)| {
        let name = String::from_utf8_lossy(&field).into_owned();
        let text = String::from_utf8_lossy(&value).into_owned();
        let number = whole(&text);
        let kept = match name.as_str() {
            "sessions" | "sweep" | "broken" => return None,
            "exp" if number.is_none() => exp.to_string(),
            "big" if number.is_none() => big.to_string(),
            "lo" if !text.is_empty() && number.is_none_or(|at| at > LATEST_MS) => "0".to_owned(),
            "attempts" if !number.is_some_and(|number| (1..=999).contains(&number)) => return None,
            "born" if number == Some(0) => return None,
            "paused" | "w" if text != "1" => return None,
            "expire" if text != "dead" => return None,
            "backoff" if text.parse::<Backoff>().is_err() => return None,
            "forward" if text.parse::<Forward>().is_err() => return None,
            name if is_session(name) && !lasts(&text, now) => return None,
            name if NUMBERS.contains(&name) && number.is_none() => return None,
            name if counters.contains(&name) && matches!(number, None | Some(0)) => return None,
            _ => return Some((field, value)),
        };
        Some((field, kept.into()))
    };
    fields.into_iter().filter_map(keep).collect()
}

fn is_session(name: &str) -> bool {
    name.len() > 13 && name.starts_with('s') && matches!(name.as_bytes()[12], b'p' | b'r' | b'c')
}

fn lasts(text: &str, now: UnixMs) -> bool {
    let kept = text.split(' ').nth(1).and_then(whole);
    kept.is_some_and(|kept| kept > now.0) && text.split(' ').count() > 2
}

/// A number as scripts write them.
fn whole(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number < 1 << 53 && number.to_string() == text).then_some(number)
}
