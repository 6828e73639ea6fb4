use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that JSON carries as the text that people write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T>(
    /// It.
    pub T,
);

impl<T: Display> Serialize for Written<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Written).map_err(D::Error::custom)
    }
}
