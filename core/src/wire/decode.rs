mod calls;
mod delivery;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::{self, Vec};
use core::str::FromStr;

use bytes::Bytes;

use super::{Value, refusal};
use crate::{Kind, Reply};

/// Reads the reply to a command of this kind. Total: what cannot be understood is [`Reply::Broken`].
pub fn decode(kind: Kind, value: Value) -> Reply {
    match (kind, value) {
        (Kind::Server, Value::Bytes(text)) => calls::server(&text),
        (Kind::Open | Kind::Reserve | Kind::Settle | Kind::Extend | Kind::Peek | Kind::Tend, value) => {
            decode_delivery(kind, value)
        }
        (kind, value) => read(kind, value, |words| match kind {
            Kind::Queues => calls::named(words),
            _ => words.text().and_then(|status| calls::answer(kind, &status, words)),
        }),
    }
}

/// The same for the commands that delivering takes; what another answered is broken.
pub(super) fn decode_delivery(kind: Kind, value: Value) -> Reply {
    read(kind, value, |words| words.text().and_then(|status| delivery::answer(kind, &status, words)))
}

fn read(kind: Kind, value: Value, answer: impl FnOnce(&mut Words) -> Option<Reply>) -> Reply {
    let mut words = match value {
        // The index is of another type until a script that writes sets it aside: it names nothing.
        Value::Error(error) if kind == Kind::Queues && error.contains("WRONGTYPE") => {
            return Reply::Named { cursor: 0, queues: Vec::new() };
        }
        Value::Error(error) if kind == Kind::Configure && error.starts_with("CROSSSLOT") => {
            return Reply::OtherSlot;
        }
        Value::Error(error) => {
            return refusal(&error).map_or(Reply::Broken(error), Reply::Refused);
        }
        Value::Array(values) => Words(values.into_iter()),
        other => return Reply::Broken(format!("{kind:?} answered {}", shown(&other))),
    };
    answer(&mut words)
        .unwrap_or_else(|| Reply::Broken(format!("the answer to {kind:?} has another form than expected")))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned(),
        Value::Array(values) => format!("an array of {}", values.len()),
        other => format!("{other:?}"),
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Bytes(bytes) => String::from_utf8(bytes.into()).ok(),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

fn bytes(value: Value) -> Option<Bytes> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn parse<T: FromStr>(value: Value) -> Option<T> {
    text(value)?.parse().ok()
}

struct Words(vec::IntoIter<Value>);

impl Words {
    fn text(&mut self) -> Option<String> {
        text(self.0.next()?)
    }

    fn parsed<T: FromStr>(&mut self) -> Option<T> {
        parse(self.0.next()?)
    }

    /// An empty text is none; any other must parse.
    #[allow(clippy::option_option)]
    fn maybe<T: FromStr>(&mut self) -> Option<Option<T>> {
        let text = self.text()?;
        if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
    }

    /// What others may have written: a text that does not parse is none, whatever its bytes.
    #[allow(clippy::option_option)]
    fn foreign<T: FromStr>(&mut self) -> Option<Option<T>> {
        Some(String::from_utf8_lossy(&bytes(self.0.next()?)?).parse().ok())
    }

    /// What others may have written, as far as it is text.
    fn lossy(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(&bytes(self.0.next()?)?).into_owned())
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.text()? == "1")
    }

    fn array(&mut self) -> Option<Words> {
        match self.0.next()? {
            Value::Array(values) => Some(Words(values.into_iter())),
            _ => None,
        }
    }

    fn letters<T>(&mut self, meaning: impl Fn(u8) -> Option<T>) -> Option<Vec<T>> {
        self.text()?.bytes().map(meaning).collect()
    }
}
