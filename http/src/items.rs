use std::fmt;

use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer as Json, Error};

use crate::Problem;
use crate::body::{JSON_ITEMS, too_many_items};

/// Reads a JSON array up to the most items that one may have: what is behind them takes neither time nor memory.
pub fn items(json: &[u8], unlisted: impl FnOnce(Error) -> Problem) -> Result<Vec<&RawValue>, Problem> {
    let mut items = Items { found: Vec::new(), is_too_long: false };
    let mut json = Json::from_slice(json);
    let read = json.deserialize_seq(&mut items).and_then(|()| json.end());
    match read {
        Ok(()) => Ok(items.found),
        Err(_) if items.is_too_long => Err(too_many_items()),
        Err(error) => Err(unlisted(error)),
    }
}

struct Items<'a> {
    found: Vec<&'a RawValue>,
    is_too_long: bool,
}

impl<'a> Visitor<'a> for &mut Items<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            if self.found.len() == JSON_ITEMS {
                self.is_too_long = true;
                return Err(A::Error::custom("too many items"));
            }
            self.found.push(item);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Vec<&str>, String> {
        let items = items(json.as_bytes(), |error| Problem::bad("bad_json", error));
        items.map(|items| items.iter().map(|item| item.get()).collect()).map_err(|problem| problem.detail)
    }

    #[test]
    fn an_array_is_read_up_to_the_limit() {
        assert_eq!(read(" [1, {\"a\":[2]} ,\"x\"] ").unwrap(), ["1", "{\"a\":[2]}", "\"x\""]);
        assert_eq!(read("[]").unwrap(), [""; 0]);
        let full = format!("[{}0]", "0,".repeat(JSON_ITEMS - 1));
        assert_eq!(read(&full).unwrap().len(), JSON_ITEMS);
        for beyond in ["0", "0]", "0]]", "!"] {
            let beyond = format!("[{}{beyond}", "0,".repeat(JSON_ITEMS));
            assert!(read(&beyond).unwrap_err().contains(if beyond.ends_with('!') {
                "expected value"
            } else {
                "more than 1000"
            }));
        }
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for json in ["", "{}", "[1", "[1,]", "[1] 2", "[1]]"] {
            assert!(!read(json).unwrap_err().contains("more than"), "{json}");
        }
    }
}
