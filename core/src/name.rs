use alloc::string::String;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;
use core::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

const PART_MAX: usize = 255;
const PREFIX_MAX: usize = 128;
const SEPARATOR: char = '~';

/// The name of a queue, alone or as `namespace~queue`: each part is 1 to 255 of letters, digits, `.`, `_` and `-`. Queues
/// are made by their first job. A queue without a namespace is in the default one, which has no name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

/// The name of a namespace: a set of queues that one token or one ceiling can be for. Nothing has to make it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Arc<str>);

/// What every key of a deployment begins with, in braces: 1 to 128 of letters, digits, `.`, `_` and `-`; `dl` unless
/// chosen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(Arc<str>);

/// A name, prefix or job id that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} {name:?} is not valid: use {allowed}")]
pub struct NameError {
    /// What was being named.
    pub what: &'static str,
    /// The rejected text, cut to 160 characters.
    pub name: String,
    /// How many of which characters are allowed.
    pub allowed: &'static str,
}

impl NameError {
    pub(crate) fn new(what: &'static str, name: &str, allowed: &'static str) -> NameError {
        NameError { what, name: name.chars().take(160).collect(), allowed }
    }
}

/// A name that is one already cannot be wrong.
impl From<Infallible> for NameError {
    fn from(never: Infallible) -> NameError {
        match never {}
    }
}

impl QueueName {
    /// The whole name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The queue of a namespace, by the part of its name that is its own.
    ///
    /// # Errors
    /// [`NameError`] if `own` is not such a part.
    pub fn within(namespace: &Namespace, own: &str) -> Result<QueueName, NameError> {
        if is_part(own) {
            Ok(QueueName([&*namespace.0, "~", own].concat().into()))
        } else {
            Err(bad_queue(own))
        }
    }

    /// The namespace it is in; `None` is the default one.
    pub fn namespace(&self) -> Option<Namespace> {
        self.0.split_once(SEPARATOR).map(|(namespace, _)| Namespace(namespace.into()))
    }

    /// The part of its name that is its own: all but the namespace.
    pub fn own(&self) -> &str {
        self.0.split_once(SEPARATOR).map_or(&*self.0, |(_, own)| own)
    }
}

impl Namespace {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a queue is in it.
    pub fn contains(&self, queue: &QueueName) -> bool {
        queue.0.split_once(SEPARATOR).is_some_and(|(namespace, _)| *namespace == *self.0)
    }
}

impl Prefix {
    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Prefix {
    fn default() -> Prefix {
        Prefix(Arc::from("dl"))
    }
}

impl FromStr for QueueName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<QueueName, NameError> {
        let (namespace, own) = name.split_once(SEPARATOR).map_or((None, name), |(ns, own)| (Some(ns), own));
        if namespace.is_none_or(is_part) && is_part(own) {
            Ok(QueueName(name.into()))
        } else {
            Err(bad_queue(name))
        }
    }
}

impl FromStr for Namespace {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Namespace, NameError> {
        let refused = || NameError::new("namespace", name, "1 to 255 of A-Z a-z 0-9 . _ -");
        if is_part(name) { Ok(Namespace(name.into())) } else { Err(refused()) }
    }
}

impl FromStr for Prefix {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Prefix, NameError> {
        let refused = || NameError::new("key prefix", name, "1 to 128 of A-Z a-z 0-9 . _ -");
        if is_part(name) && name.len() <= PREFIX_MAX { Ok(Prefix(name.into())) } else { Err(refused()) }
    }
}

fn is_part(part: &str) -> bool {
    (1..=PART_MAX).contains(&part.len())
        && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn bad_queue(name: &str) -> NameError {
    NameError::new("queue name", name, "1 to 255 of A-Z a-z 0-9 . _ -, alone or as namespace~queue")
}

impl Serialize for QueueName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for QueueName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QueueName, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

macro_rules! shown_as_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

shown_as_text!(QueueName);
shown_as_text!(Namespace);
shown_as_text!(Prefix);

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn names_keep_to_their_alphabet() {
        let longest = "q".repeat(255);
        for good in ["a", "orders.v2_x-1", "shop~orders", &longest, &[&*longest, "~", &longest].concat()] {
            assert_eq!(good.parse::<QueueName>().unwrap().as_str(), good);
        }
        let too_long = "q".repeat(256);
        let too_long_in_a_namespace = ["ns~", &too_long].concat();
        for bad in [
            "",
            "a b",
            "a#1",
            "~q",
            "ns~",
            "~",
            "a~b~c",
            "ns~a b",
            "é",
            "a/b",
            &too_long,
            &too_long_in_a_namespace,
        ] {
            assert!(bad.parse::<QueueName>().is_err(), "{bad}");
            assert!(bad.parse::<Namespace>().is_err(), "{bad}");
            assert!(bad.parse::<Prefix>().is_err(), "{bad}");
        }
        assert!("ns~q".parse::<Namespace>().is_err());
        assert!("q".repeat(129).parse::<Prefix>().is_err());
        let error = "a b".parse::<QueueName>().unwrap_err();
        let expected =
            "queue name \"a b\" is not valid: use 1 to 255 of A-Z a-z 0-9 . _ -, alone or as namespace~queue";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_queue_knows_its_namespace_and_its_own_name() {
        let (plain, spaced): (QueueName, QueueName) =
            ("orders".parse().unwrap(), "shop~orders".parse().unwrap());
        let shop: Namespace = "shop".parse().unwrap();
        assert_eq!((plain.namespace(), plain.own()), (None, "orders"));
        assert_eq!((spaced.namespace(), spaced.own()), (Some(shop.clone()), "orders"));
        assert_eq!(QueueName::within(&shop, "orders"), Ok(spaced.clone()));
        assert!(QueueName::within(&shop, "a~b").is_err());
        assert!(shop.contains(&spaced) && !shop.contains(&plain));
        assert!(!"sho".parse::<Namespace>().unwrap().contains(&spaced));
    }
}
