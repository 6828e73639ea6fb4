use std::collections::BTreeMap;

use bytes::Bytes;

/// What a queue forwards into: a list or a stream of the users'.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    List(Vec<Bytes>),
    Stream(Vec<StreamEntry>),
}

/// One entry of a stream: its id, then its fields in order.
#[derive(Clone, Debug)]
pub(crate) struct StreamEntry {
    pub(crate) id: (u64, u64),
    pub(crate) fields: Vec<(Bytes, Bytes)>,
}

pub(crate) type Destinations = BTreeMap<String, Destination>;

/// What Redis says of a command on a key of another type.
pub(crate) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// RPUSH: all or nothing.
pub(crate) fn push(
    destinations: &mut Destinations,
    key: &str,
    bodies: Vec<Bytes>,
) -> Result<(), &'static str> {
    if bodies.is_empty() {
        return Ok(());
    }
    match destinations.entry(key.to_owned()).or_insert(Destination::List(Vec::new())) {
        Destination::List(list) => {
            list.extend(bodies);
            Ok(())
        }
        Destination::Stream(_) => Err(WRONG_TYPE),
    }
}

/// XADD with an id of its own making.
pub(crate) fn add(
    destinations: &mut Destinations,
    key: &str,
    now_ms: u64,
    fields: Vec<(Bytes, Bytes)>,
) -> Result<(), &'static str> {
    match destinations.entry(key.to_owned()).or_insert(Destination::Stream(Vec::new())) {
        Destination::Stream(entries) => {
            let id = match entries.last() {
                Some(last) if last.id.0 >= now_ms => (last.id.0, last.id.1 + 1),
                _ => (now_ms, 0),
            };
            entries.push(StreamEntry { id, fields });
            Ok(())
        }
        Destination::List(_) => Err(WRONG_TYPE),
    }
}
