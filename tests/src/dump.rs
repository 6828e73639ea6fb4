use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::wire::Value;
use delayline_embedded::Dumped;

use crate::words;

/// The latest time that a state can hold, and so the latest that scripts know.
const LATEST_MS: u64 = 9_999_999_999_999;

/// All keys and what they hold.
pub type Dump = BTreeMap<String, Contents>;

/// What a key holds, in an order that two stores share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A string.
    Text(Bytes),
    /// A hash, by field.
    Hash(BTreeMap<Bytes, Bytes>),
    /// A sorted set, in its order: members and scores.
    Sorted(Vec<(Bytes, u64)>),
    /// A list.
    List(Vec<Bytes>),
    /// A stream: the fields and values of each entry, without its id.
    Stream(Vec<Vec<Bytes>>),
}

/// Answers all keys: their names, types and contents.
const SCRIPT: &str = "
local read = {string = {'GET'}, hash = {'HGETALL'}, zset = {'ZRANGE', 0, -1, 'WITHSCORES'}, list = {'LRANGE', 0, -1},
    stream = {'XRANGE', '-', '+'}}
local keys = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
    local kind = redis.call('TYPE', key).ok
    local how = read[kind]
    if not how then return redis.error_reply(key .. ' is a ' .. kind) end
    keys[#keys + 1] = {key, kind, redis.call(how[1], key, unpack(how, 2))}
end
return keys";

/// The words of a command that reads all a server holds, at once.
pub fn dump_words() -> [&'static str; 3] {
    ["EVAL", SCRIPT, "0"]
}

/// What that command answered.
///
/// # Panics
/// If a key is of a type that delayline does not use.
pub fn dumped(answer: Value) -> Dump {
    match answer {
        Value::Array(keys) => keys.into_iter().map(contents).collect(),
        other => panic!("{other:?} is no dump"),
    }
}

impl From<Dumped> for Contents {
    fn from(dumped: Dumped) -> Contents {
        match dumped {
            Dumped::Hash(fields) => Contents::Hash(fields),
            Dumped::Zset(members) => Contents::Sorted(
                members.into_iter().map(|(member, at)| (member, at.min(LATEST_MS))).collect(),
            ),
            Dumped::Text(text) => Contents::Text(text),
            Dumped::List(elements) => Contents::List(elements),
            Dumped::Stream(entries) => {
                let words =
                    |(_, fields): (_, Vec<_>)| fields.into_iter().flat_map(|(name, value)| [name, value]);
                Contents::Stream(entries.into_iter().map(|entry| words(entry).collect()).collect())
            }
        }
    }
}

fn contents(key: Value) -> (String, Contents) {
    let mut parts = words(key).into_iter();
    let mut next = || parts.next().expect("a key, its type and its contents");
    let (key, kind, value) = (text(next()), text(next()), next());
    let contents = match kind.as_ref() {
        b"string" => Contents::Text(text(value)),
        b"hash" => Contents::Hash(pairs(value).into_iter().collect()),
        b"zset" => {
            let members = pairs(value).into_iter();
            Contents::Sorted(members.map(|(member, score)| (member, number(&score))).collect())
        }
        b"list" => Contents::List(texts(value)),
        _ => {
            let fields = |entry| words(entry).into_iter().nth(1).map_or_else(Vec::new, texts);
            Contents::Stream(words(value).into_iter().map(fields).collect())
        }
    };
    (String::from_utf8_lossy(&key).into_owned(), contents)
}

fn text(value: Value) -> Bytes {
    match value {
        Value::Bytes(bytes) => bytes,
        other => panic!("{other:?} is not text"),
    }
}

fn texts(value: Value) -> Vec<Bytes> {
    words(value).into_iter().map(text).collect()
}

fn pairs(value: Value) -> Vec<(Bytes, Bytes)> {
    texts(value).chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// As scripts read it: whole, and a time that a state can hold.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn number(score: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(score);
    let score: f64 = text.parse().unwrap_or_else(|_| panic!("{text} is no score"));
    (score.ceil().max(0.0) as u64).min(LATEST_MS)
}
