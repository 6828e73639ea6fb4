use alloc::string::String;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;
use core::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

const NAME_MAX: usize = 128;

/// The name of a queue: 1 to 128 of letters, digits, `.`, `_` and `-`. Queues are made by their first job.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

/// What every key of a deployment begins with, in braces. Same alphabet as [`QueueName`]; `dl` unless chosen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(Arc<str>);

/// A name, prefix or job id that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} {name:?} is not valid: use 1 to 128 of {alphabet}")]
pub struct NameError {
    /// What was being named.
    pub what: &'static str,
    /// The rejected text, cut to 160 characters.
    pub name: String,
    /// The characters that are allowed.
    pub alphabet: &'static str,
}

impl NameError {
    pub(crate) fn new(what: &'static str, name: &str, alphabet: &'static str) -> NameError {
        NameError { what, name: name.chars().take(160).collect(), alphabet }
    }
}

/// A name that is one already cannot be wrong.
impl From<Infallible> for NameError {
    fn from(never: Infallible) -> NameError {
        match never {}
    }
}

impl QueueName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
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
        checked("queue name", name).map(QueueName)
    }
}

impl FromStr for Prefix {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Prefix, NameError> {
        checked("key prefix", name).map(Prefix)
    }
}

fn checked(what: &'static str, name: &str) -> Result<Arc<str>, NameError> {
    let fits = (1..=NAME_MAX).contains(&name.len());
    if fits && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        Ok(Arc::from(name))
    } else {
        Err(NameError::new(what, name, "A-Z a-z 0-9 . _ -"))
    }
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
shown_as_text!(Prefix);

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn names_keep_to_their_alphabet() {
        for good in ["a", "orders.v2_x-1", &"q".repeat(128)] {
            assert_eq!(good.parse::<QueueName>().unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a#1", "ns~q", "é", "a/b", &"q".repeat(129)] {
            assert!(bad.parse::<QueueName>().is_err(), "{bad}");
            assert!(bad.parse::<Prefix>().is_err(), "{bad}");
        }
        let error = "a b".parse::<QueueName>().unwrap_err();
        assert_eq!(error.to_string(), "queue name \"a b\" is not valid: use 1 to 128 of A-Z a-z 0-9 . _ -");
    }
}
