use delayline_tokio::redis::Cmd;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::refusal::Refusal;

/// What blocks or changes the connection, which all requests share, or stops Redis.
const UNAVAILABLE: [&str; 41] = [
    "ASKING",
    "AUTH",
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    "CLIENT",
    "CLUSTER",
    "DEBUG",
    "DISCARD",
    "EXEC",
    "FAILOVER",
    "HELLO",
    "MIGRATE",
    "MONITOR",
    "MULTI",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "QUIT",
    "READONLY",
    "READWRITE",
    "REPLCONF",
    "REPLICAOF",
    "RESET",
    "SELECT",
    "SHUTDOWN",
    "SLAVEOF",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
    "UNWATCH",
    "WAIT",
    "WAITAOF",
    "WATCH",
];

/// A command of Redis: its name and its arguments.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Command(Vec<Word>);

/// The bytes of a name or an argument.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) Vec<u8>);

impl Command {
    pub(crate) fn new(words: Vec<Word>) -> Command {
        Command(words)
    }

    /// Refuses what cannot be sent over a connection that is shared.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let Some((Word(name), arguments)) = self.0.split_first() else { return Err(Refusal::Empty) };
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        let blocks = matches!(&*name, "XREAD" | "XREADGROUP") && waits(arguments);
        if blocks || UNAVAILABLE.contains(&&*name) { Err(Refusal::Unavailable(name)) } else { Ok(()) }
    }

    /// As Redis reads it.
    pub(crate) fn packed(&self) -> Cmd {
        let bytes = self.0.iter().map(|word| word.0.len()).sum();
        let mut packed = Cmd::with_capacity(self.0.len(), bytes);
        for Word(word) in &self.0 {
            packed.arg(word);
        }
        packed
    }
}

/// Whether a read of streams has the option BLOCK, which comes before the streams.
fn waits(arguments: &[Word]) -> bool {
    let mut options = arguments.iter().take_while(|word| !word.0.eq_ignore_ascii_case(b"STREAMS"));
    options.any(|word| word.0.eq_ignore_ascii_case(b"BLOCK"))
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        match json.as_bytes() {
            [b'"', ..] => {
                let text: String = serde_json::from_str(json).map_err(D::Error::custom)?;
                Ok(Word(text.into_bytes()))
            }
            [b'{' | b'[' | b'n', ..] => {
                Err(D::Error::custom("a word of a command is a string, a number or a boolean"))
            }
            number_or_boolean => Ok(Word(number_or_boolean.to_vec())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Command {
        Command::new(words.iter().map(|word| Word(word.as_bytes().to_vec())).collect())
    }

    #[test]
    fn words_are_strings_numbers_and_booleans() {
        let read = |json: &str| serde_json::from_str::<Command>(json).map_err(|error| error.to_string());
        for (json, expected) in [
            (r#"["SET","k","v"]"#, &["SET", "k", "v"][..]),
            (r#"[ "SET", "k\u00e9\n", "日本 🎉", "" ]"#, &["SET", "ké\n", "日本 🎉", ""]),
            (
                r#"["ZADD","k",1.50,-2,1e400,9007199254740993]"#,
                &["ZADD", "k", "1.50", "-2", "1e400", "9007199254740993"],
            ),
            (r#"["SET","k",true,false]"#, &["SET", "k", "true", "false"]),
            ("[]", &[]),
        ] {
            assert_eq!(read(json).unwrap(), words(expected), "{json}");
        }
        for json in [r#"["SET","k",null]"#, r#"["SET","k",{"a":1}]"#, r#"["SET",["k"]]"#] {
            let why = read(json).unwrap_err();
            assert!(why.contains("a string, a number or a boolean"), "{json}: {why}");
        }
        for json in ["", "{}", "\"PING\"", r#"["SET""#, r#"["SET"] x"#, r#"["\ud800"]"#, "[nan]"] {
            assert!(read(json).is_err(), "{json}");
        }
    }

    #[test]
    fn it_is_packed_as_redis_reads_it() {
        let packed = words(&["SET", "k", ""]).packed().get_packed_command();
        assert_eq!(packed, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
    }

    #[test]
    fn what_blocks_or_changes_the_connection_is_refused() {
        for refused in [
            &["BLPOP", "k", "0"][..],
            &["blpop", "k", "0"],
            &["Watch", "k"],
            &["SELECT", "1"],
            &["CLIENT", "REPLY", "OFF"],
            &["XREAD", "COUNT", "1", "block", "0", "STREAMS", "s", "$"],
        ] {
            let refusal = words(refused).check().unwrap_err().to_string();
            let name = refused[0].to_uppercase();
            assert!(refusal.starts_with(&format!("ERR Command is not available: '{name}'")), "{refusal}");
        }
        for allowed in [
            &["LPOP", "k"][..],
            &["PING"],
            &["PUBLISH", "watch", "select"],
            &["XREAD", "COUNT", "1", "STREAMS", "block", "$"],
            &["GET", "BLPOP"],
        ] {
            assert!(words(allowed).check().is_ok(), "{allowed:?}");
        }
        assert!(matches!(words(&[]).check(), Err(Refusal::Empty)));
    }

    #[test]
    fn what_is_refused_is_in_order() {
        assert!(UNAVAILABLE.is_sorted());
    }
}
