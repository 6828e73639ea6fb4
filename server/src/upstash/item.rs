use base64ct::{Base64, Encoding as _};
use delayline_tokio::redis::{ServerError, Value};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::refusal::Refusal;

/// Beyond it, JavaScript's numbers skip some.
const EXACT: u64 = 1 << 53;

/// How strings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As they are; what is no UTF-8 is replaced.
    Text,
    /// All of them, also within arrays, but for Redis's plain OK.
    Base64,
}

/// What a command was answered: `{"result":…}` or `{"error":…}`.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Item<'a> {
    Result(Shown<'a>),
    Error(String),
}

/// A reply of RESP2 as JSON.
pub(crate) struct Shown<'a> {
    value: &'a Value,
    encoding: Encoding,
}

impl<'a> Item<'a> {
    pub(crate) fn new(value: &'a Value, encoding: Encoding) -> Item<'a> {
        match value {
            Value::ServerError(error) => Item::Error(said(error)),
            Value::Okay => Item::Result(Shown { value, encoding: Encoding::Text }),
            value => Item::Result(Shown { value, encoding }),
        }
    }

    /// What came of a command, which may have been refused.
    pub(super) fn of(reply: &'a Result<Value, Refusal>, encoding: Encoding) -> Item<'a> {
        match reply {
            Ok(value) => Item::new(value, encoding),
            Err(refusal) => Item::Error(refusal.to_string()),
        }
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Int(number) if number.unsigned_abs() > EXACT => {
                self.string(number.to_string().as_bytes(), serializer)
            }
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::BulkString(bytes) => self.string(bytes, serializer),
            Value::SimpleString(text) => self.string(text.as_bytes(), serializer),
            Value::Okay => self.string(b"OK", serializer),
            Value::ServerError(error) => serializer.serialize_str(&said(error)),
            Value::Array(values) => {
                let mut array = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    array.serialize_element(&Shown { value, encoding: self.encoding })?;
                }
                array.end()
            }
            _ => serializer.serialize_unit(),
        }
    }
}

impl Shown<'_> {
    fn string<S: Serializer>(&self, bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match self.encoding {
            Encoding::Text => serializer.serialize_str(&String::from_utf8_lossy(bytes)),
            Encoding::Base64 => serializer.serialize_str(&Base64::encode_string(bytes)),
        }
    }
}

/// What Redis said of a command that failed.
pub(crate) fn said(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_tokio::redis::parse_redis_value;
    use serde_json::Value as Json;

    /// What a client makes of a result in base64.
    fn decoded(json: &Json, nested: bool) -> Json {
        match json {
            Json::String(text) if text == "OK" && !nested => json.clone(),
            Json::String(text) => {
                String::from_utf8_lossy(&Base64::decode_vec(text).unwrap()).into_owned().into()
            }
            Json::Array(items) => items.iter().map(|item| decoded(item, true)).collect(),
            other => other.clone(),
        }
    }

    fn written(resp: &[u8], encoding: Encoding) -> String {
        serde_json::to_string(&Item::new(&parse_redis_value(resp).unwrap(), encoding)).unwrap()
    }

    #[test]
    fn replies_are_json_and_their_strings_may_be_in_base64() {
        for (resp, text, base64) in [
            ("$-1\r\n", r#"{"result":null}"#, r#"{"result":null}"#),
            ("*-1\r\n", r#"{"result":null}"#, r#"{"result":null}"#),
            (":137\r\n", r#"{"result":137}"#, r#"{"result":137}"#),
            (":-1\r\n", r#"{"result":-1}"#, r#"{"result":-1}"#),
            (":9007199254740992\r\n", r#"{"result":9007199254740992}"#, r#"{"result":9007199254740992}"#),
            (
                ":9007199254740993\r\n",
                r#"{"result":"9007199254740993"}"#,
                r#"{"result":"OTAwNzE5OTI1NDc0MDk5Mw=="}"#,
            ),
            (
                ":-9223372036854775808\r\n",
                r#"{"result":"-9223372036854775808"}"#,
                r#"{"result":"LTkyMjMzNzIwMzY4NTQ3NzU4MDg="}"#,
            ),
            ("+OK\r\n", r#"{"result":"OK"}"#, r#"{"result":"OK"}"#),
            ("$2\r\nOK\r\n", r#"{"result":"OK"}"#, r#"{"result":"T0s="}"#),
            ("+PONG\r\n", r#"{"result":"PONG"}"#, r#"{"result":"UE9ORw=="}"#),
            ("$3\r\nbar\r\n", r#"{"result":"bar"}"#, r#"{"result":"YmFy"}"#),
            ("$0\r\n\r\n", r#"{"result":""}"#, r#"{"result":""}"#),
            ("$3\r\n1.5\r\n", r#"{"result":"1.5"}"#, r#"{"result":"MS41"}"#),
            ("$8\r\n{\"a\":\"\n\"\r\n", r#"{"result":"{\"a\":\"\n\""}"#, r#"{"result":"eyJhIjoiCiI="}"#),
            ("*0\r\n", r#"{"result":[]}"#, r#"{"result":[]}"#),
            (
                "*4\r\n+OK\r\n:1\r\n$-1\r\n*2\r\n$1\r\na\r\n*1\r\n+OK\r\n",
                r#"{"result":["OK",1,null,["a",["OK"]]]}"#,
                r#"{"result":["T0s=",1,null,["YQ==",["T0s="]]]}"#,
            ),
            ("-ERR wrong type\r\n", r#"{"error":"ERR wrong type"}"#, r#"{"error":"ERR wrong type"}"#),
            (
                "-NOSCRIPT No matching script.\r\n",
                r#"{"error":"NOSCRIPT No matching script."}"#,
                r#"{"error":"NOSCRIPT No matching script."}"#,
            ),
            ("-MINE\r\n", r#"{"error":"MINE"}"#, r#"{"error":"MINE"}"#),
            ("*2\r\n:1\r\n-MINE too\r\n", r#"{"result":[1,"MINE too"]}"#, r#"{"result":[1,"MINE too"]}"#),
        ] {
            // A raw newline in a literal stands for the two characters that JSON escapes it with.
            assert_eq!(written(resp.as_bytes(), Encoding::Text), text.replace('\n', "\\n"), "{resp}");
            assert_eq!(written(resp.as_bytes(), Encoding::Base64), base64, "{resp}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_survive_in_base64_only() {
        let bytes: Vec<u8> = (0..=255).collect();
        let resp = [b"$256\r\n".as_slice(), &bytes, b"\r\n"].concat();
        let json: Json = serde_json::from_str(&written(&resp, Encoding::Base64)).unwrap();
        assert_eq!(Base64::decode_vec(json["result"].as_str().unwrap()).unwrap(), bytes);
        assert_eq!(written(b"$3\r\na\xffb\r\n", Encoding::Text), r#"{"result":"a�b"}"#);
    }

    #[test]
    fn both_encodings_say_the_same() {
        for resp in [
            "+OK\r\n",
            "$2\r\nOK\r\n",
            "$4\r\nT0s=\r\n",
            "*3\r\n$2\r\nOK\r\n+OK\r\n*1\r\n$2\r\nOK\r\n",
            "$6\r\n日本\r\n",
        ] {
            let read =
                |encoding| -> Json { serde_json::from_str(&written(resp.as_bytes(), encoding)).unwrap() };
            let text = read(Encoding::Text)["result"].clone();
            assert_eq!(decoded(&read(Encoding::Base64)["result"], false), text, "{resp}");
        }
    }
}
