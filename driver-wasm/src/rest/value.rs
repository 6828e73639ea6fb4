use base64ct::{Base64, Encoding};
use delayline_core::wire::Value;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

const FRACTION: &str = "ERR a number with a fraction, which Redis does not answer";

/// One result of a pipeline, as Redis would have answered it.
pub(super) struct Item(pub(super) Value);

/// A value within a result.
struct Nested(Value);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Item, D::Error> {
        deserializer.deserialize_map(ItemVisitor).map(Item)
    }
}

impl<'de> Deserialize<'de> for Nested {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Nested, D::Error> {
        deserializer.deserialize_any(NestedVisitor).map(Nested)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with result or error")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut value = None;
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*name {
                "result" => value = Some(map.next_value::<Nested>()?.0),
                "error" => value = Some(Value::Error(map.next_value()?)),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        value.ok_or_else(|| A::Error::missing_field("result"))
    }
}

struct NestedVisitor;

impl<'de> Visitor<'de> for NestedVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value of Redis")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Int(truth.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or_else(|_| Value::Bytes(number.to_string().into()), Value::Int))
    }

    /// Redis answers floats as text. To write one would link what writes them.
    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Error(FRACTION.to_owned()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Bytes(Base64::decode_vec(text).unwrap_or_else(|_| text.into()).into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Nested(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        ItemVisitor.visit_map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(json: &str) -> Option<Value> {
        serde_json::from_str::<Item>(json).ok().map(|item| item.0)
    }

    #[test]
    fn every_form_of_a_value_is_read() {
        let bytes = |text: &'static str| Value::Bytes(text.as_bytes().into());
        for (json, value) in [
            (r#"{"result":null}"#, Value::Nil),
            (r#"{"result":-7}"#, Value::Int(-7)),
            (r#"{"result":18446744073709551615}"#, bytes("18446744073709551615")),
            (r#"{"result":1.5}"#, Value::Error(FRACTION.into())),
            (r#"{"result":"OK"}"#, bytes("OK")),
            (r#"{"result":"b2s="}"#, bytes("ok")),
            (r#"{"result":""}"#, bytes("")),
            (
                r#"{"result":["b2s=",1,["OK",null]]}"#,
                Value::Array(vec![bytes("ok"), Value::Int(1), Value::Array(vec![bytes("OK"), Value::Nil])]),
            ),
            (
                r#"{"error":"NOSCRIPT No matching script."}"#,
                Value::Error("NOSCRIPT No matching script.".into()),
            ),
            (r#"{"took":3,"result":1}"#, Value::Int(1)),
            (r#"{"result":[{"error":"ERR x"}]}"#, Value::Array(vec![Value::Error("ERR x".into())])),
        ] {
            assert_eq!(read(json), Some(value), "{json}");
        }
        for json in ["{}", "[]", "1", r#"{"error":7}"#, r#"{"result":"#] {
            assert_eq!(read(json), None, "{json}");
        }
    }

    proptest! {
        #[test]
        fn all_bytes_come_back(bytes: Vec<u8>) {
            let json = format!(r#"{{"result":"{}"}}"#, Base64::encode_string(&bytes));
            prop_assert_eq!(read(&json), Some(Value::Bytes(bytes.into())));
        }
    }
}
