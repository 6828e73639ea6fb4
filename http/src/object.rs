use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// What is read from a JSON object and from nothing else: serde takes an array for a struct, too, its elements for the
/// fields in the order in which they happen to stand in the code.
#[derive(Debug)]
pub struct Object<T>(
    /// It.
    pub T,
);

struct Fields<T>(PhantomData<T>);

impl<T> Object<T> {
    /// Reads it from the text of an object.
    pub fn read<'de>(json: &'de [u8]) -> serde_json::Result<T>
    where
        T: Deserialize<'de>,
    {
        serde_json::from_slice(json).map(|Object(read)| read)
    }

    /// Reads it where it is a field: for `#[serde(deserialize_with)]`.
    pub fn within<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>
    where
        T: Deserialize<'de>,
    {
        deserializer.deserialize_map(Fields(PhantomData))
    }

    /// Reads it where it is a field that may be null.
    pub fn within_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: Deserialize<'de>,
    {
        Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|Object(read)| read))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        Object::within(deserializer).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    #[derive(Default)]
    struct Inner {
        n: u8,
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Outer<'a> {
        #[serde(deserialize_with = "Object::within")]
        inner: Inner,
        #[serde(deserialize_with = "Object::within_option")]
        other: Option<Inner>,
        #[serde(borrow)]
        raw: Option<&'a RawValue>,
    }

    #[test]
    fn an_object_is_read_as_without() {
        let read: Outer<'_> =
            Object::read(br#"{"inner": {"n": 1}, "other": {"n": 2}, "raw": [1, 2]}"#).unwrap();
        assert_eq!((read.inner, read.other), (Inner { n: 1 }, Some(Inner { n: 2 })));
        assert_eq!(read.raw.unwrap().get(), "[1, 2]");
        let read: Outer<'_> = Object::read(br#"{"other": null}"#).unwrap();
        assert_eq!((read.inner, read.other), (Inner::default(), None));
        let unknown = Object::<Outer<'_>>::read(b"{\n\"none\": 1}").unwrap_err();
        assert!(unknown.to_string().starts_with("unknown field `none`"), "{unknown}");
        assert_eq!(unknown.line(), 2);
    }

    #[test]
    fn an_array_is_no_object_wherever_it_is() {
        for json in ["[]", "[{\"n\":1}]", "{\"inner\":[1]}", "{\"other\":[1]}", "{\"inner\":null}", "5"] {
            let refused = Object::<Outer<'_>>::read(json.as_bytes()).unwrap_err();
            assert!(refused.to_string().contains("expected an object"), "{json}: {refused}");
        }
    }
}
