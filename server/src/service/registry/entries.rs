use std::collections::BTreeMap;
use std::ops::Bound;

use serde::de::DeserializeOwned;

/// The field that is no entry but counts the changes.
pub(super) const VERSION: &str = "version";

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A token of this service, by its id.
    Token,
    /// A token of lmstfy's API, by its namespace and the SHA-256 of its text.
    LmstfyToken,
    /// How often such a token may ask, by the same.
    LmstfyLimit,
    /// The ceilings of a namespace, by its name.
    Namespace,
    /// A queue whose jobs are pushed, by its name.
    Push,
    /// Up to which dead letter of a queue callbacks were published, by its name.
    PushDead,
}

/// All entries at one time.
#[derive(Debug, Default)]
pub(crate) struct Entries(BTreeMap<String, String>);

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Kind::Token => "token:",
            Kind::LmstfyToken => "lmstfy-token:",
            Kind::LmstfyLimit => "lmstfy-limit:",
            Kind::Namespace => "namespace:",
            Kind::Push => "push:",
            Kind::PushDead => "push-dead:",
        }
    }

    pub(super) fn field(self, name: &str) -> String {
        [self.prefix(), name].concat()
    }
}

impl Entries {
    pub(super) fn new(fields: BTreeMap<String, String>) -> Entries {
        Entries(fields)
    }

    /// How often there was a change; it begins anew if Redis has lost the registry.
    pub(crate) fn version(&self) -> Option<&str> {
        self.0.get(VERSION).map(String::as_str)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len().saturating_sub(usize::from(self.version().is_some()))
    }

    pub(crate) fn contains(&self, kind: Kind, name: &str) -> bool {
        self.0.contains_key(&kind.field(name))
    }

    /// The entry of this name, if there is one that can be read.
    pub(crate) fn get<T: DeserializeOwned>(&self, kind: Kind, name: &str) -> Option<T> {
        self.0.get(&kind.field(name)).and_then(|text| serde_json::from_str(text).ok())
    }

    /// All entries of this kind that can be read, with their names, in order.
    pub(crate) fn all<T: DeserializeOwned>(&self, kind: Kind) -> impl Iterator<Item = (&str, T)> {
        let prefix = kind.prefix();
        let from = self.0.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.map_while(move |(field, text)| field.strip_prefix(prefix).map(|name| (name, text)))
            .filter_map(|(name, text)| Some((name, serde_json::from_str(text).ok()?)))
    }
}
