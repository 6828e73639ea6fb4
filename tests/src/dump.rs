use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::wire::Value;
use delayline_embedded::Dumped;

use crate::{Connection, words};

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

impl Contents {
    /// Reads a key's contents.
    ///
    /// # Panics
    /// If the connection is lost, or the key is of a type that delayline does not use.
    pub fn read(connection: &mut Connection, key: &str) -> Contents {
        let kind = text(connection.ask(&["TYPE", key]));
        match kind.as_ref() {
            b"string" => Contents::Text(text(connection.ask(&["GET", key]))),
            b"hash" => Contents::Hash(pairs(connection.ask(&["HGETALL", key])).into_iter().collect()),
            b"zset" => {
                let entries = pairs(connection.ask(&["ZRANGE", key, "0", "-1", "WITHSCORES"]));
                Contents::Sorted(
                    entries.into_iter().map(|(member, score)| (member, number(&score))).collect(),
                )
            }
            b"list" => Contents::List(texts(connection.ask(&["LRANGE", key, "0", "-1"]))),
            b"stream" => {
                let entries = words(connection.ask(&["XRANGE", key, "-", "+"]));
                let fields = |entry| words(entry).into_iter().nth(1).map_or_else(Vec::new, texts);
                Contents::Stream(entries.into_iter().map(fields).collect())
            }
            other => panic!("{key} is a {}", String::from_utf8_lossy(other)),
        }
    }
}

impl From<Dumped> for Contents {
    fn from(dumped: Dumped) -> Contents {
        match dumped {
            Dumped::Hash(fields) => Contents::Hash(fields),
            Dumped::Zset(members) => Contents::Sorted(members),
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

fn number(score: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(score);
    text.parse().unwrap_or_else(|_| panic!("{text} is not a whole score"))
}
