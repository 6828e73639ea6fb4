use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use delayline_tokio::redis::{Arg, Cmd};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::limits::RequestLimits;
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

/// What reads and writes data, runs scripts or publishes: what delayline and ordinary clients need. The rest may change how
/// Redis works, or throw all data away.
const FOR_DATA: &str = "\
    APPEND BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS COPY DBSIZE DECR DECRBY DEL ECHO EVAL EVALSHA EVALSHA_RO \
    EVAL_RO EXISTS EXPIRE EXPIREAT EXPIRETIME GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER \
    GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE GET GETBIT GETDEL GETEX GETRANGE GETSET HDEL HEXISTS \
    HEXPIRE HEXPIREAT HEXPIRETIME HGET HGETALL HGETDEL HGETEX HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HPERSIST \
    HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSET HSETEX HSETNX HSTRLEN HTTL HVALS INCR INCRBY \
    INCRBYFLOAT INFO JSON.ARRAPPEND JSON.ARRINDEX JSON.ARRINSERT JSON.ARRLEN JSON.ARRPOP JSON.ARRTRIM JSON.CLEAR \
    JSON.DEL JSON.FORGET JSON.GET JSON.MERGE JSON.MGET JSON.MSET JSON.NUMINCRBY JSON.NUMMULTBY JSON.OBJKEYS \
    JSON.OBJLEN JSON.RESP JSON.SET JSON.STRAPPEND JSON.STRLEN JSON.TOGGLE JSON.TYPE KEYS LCS LINDEX LINSERT LLEN \
    LMOVE LMPOP LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MGET MSET MSETNX OBJECT PERSIST PEXPIRE PEXPIREAT \
    PEXPIRETIME PFADD PFCOUNT PFMERGE PING PSETEX PTTL PUBLISH RANDOMKEY RENAME RENAMENX RPOP RPOPLPUSH RPUSH RPUSHX \
    SADD SCAN SCARD SDIFF SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTER SINTERCARD SINTERSTORE SISMEMBER \
    SMEMBERS SMISMEMBER SMOVE SORT_RO SPOP SRANDMEMBER SREM SSCAN STRLEN SUBSTR SUNION SUNIONSTORE TIME TOUCH TTL \
    TYPE UNLINK XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XINFO XLEN XPENDING XRANGE XREAD XREADGROUP XREVRANGE XTRIM \
    ZADD ZCARD ZCOUNT ZDIFF ZDIFFSTORE ZINCRBY ZINTER ZINTERCARD ZINTERSTORE ZLEXCOUNT ZMPOP ZMSCORE ZPOPMAX ZPOPMIN \
    ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK \
    ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION ZUNIONSTORE";

static IS_FOR_DATA: LazyLock<HashSet<&str>> = LazyLock::new(|| FOR_DATA.split(' ').collect());

/// The most arrays and objects inside of each other, as in other JSON. Each that is skipped takes memory until it ends.
const LEVELS: usize = 128;

/// A command of Redis: its name and its arguments.
#[derive(Debug)]
pub(crate) struct Command(Cmd);

impl Command {
    pub(crate) fn new<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Command {
        let mut packed = Cmd::new();
        for word in words {
            packed.arg(word.as_ref());
        }
        Command(packed)
    }

    /// Reads one from JSON.
    pub(super) fn one(json: &[u8], limits: RequestLimits) -> serde_json::Result<Command> {
        read(json, Words(&mut Room::of(json, limits)))
    }

    /// Reads several from JSON.
    pub(super) fn several(json: &[u8], limits: RequestLimits) -> serde_json::Result<Vec<Command>> {
        read(json, Several(&mut Room::of(json, limits)))
    }

    /// Refuses what cannot be sent over a connection that is shared, and what only admins do unless that is allowed.
    pub(crate) fn check(&self, admin: bool) -> Result<(), Refusal> {
        let mut words = self.words();
        let name = words.next().ok_or(Refusal::Empty)?;
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        let blocks = matches!(&*name, "XREAD" | "XREADGROUP") && waits(words.clone());
        if matches!(&*name, "SUBSCRIBE" | "PSUBSCRIBE") {
            return Err(Refusal::NoEventStream);
        }
        if blocks || UNAVAILABLE.contains(&&*name) {
            return Err(Refusal::Unavailable(name));
        }
        let is_for_data = match &*name {
            "SCRIPT" => words.next().is_some_and(|verb| {
                verb.eq_ignore_ascii_case(b"LOAD") || verb.eq_ignore_ascii_case(b"EXISTS")
            }),
            name => IS_FOR_DATA.contains(name),
        };
        if admin || is_for_data { Ok(()) } else { Err(Refusal::Admin(name)) }
    }

    /// As Redis reads it.
    pub(crate) fn packed(self) -> Cmd {
        self.0
    }

    fn words(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.0.args_iter().filter_map(|word| match word {
            Arg::Simple(word) => Some(word),
            _ => None,
        })
    }
}

/// Whether a read of streams has the option BLOCK, which comes before the streams.
fn waits<'a>(arguments: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut options = arguments.take_while(|word| !word.eq_ignore_ascii_case(b"STREAMS"));
    options.any(|word| word.eq_ignore_ascii_case(b"BLOCK"))
}

/// How much more a request may have: counted while it is read, since each word costs more than its bytes.
struct Room<'de> {
    commands: usize,
    words: usize,
    limits: RequestLimits,
    /// What a command is made of, in JSON: each command has it for itself while it is read.
    command: Vec<&'de str>,
}

impl Room<'_> {
    fn of(json: &[u8], limits: RequestLimits) -> Room<'_> {
        // A word has at least a byte, and one before it.
        let command = Vec::with_capacity(limits.words.min(json.len() / 2));
        Room { commands: limits.commands, words: limits.words, limits, command }
    }
}

fn take<E: Error>(left: &mut usize, limit: usize, what: &str) -> Result<(), E> {
    let more = left.checked_sub(1).ok_or_else(|| E::custom(format!("it has more than {limit} {what}")))?;
    *left = more;
    Ok(())
}

fn read<'de, S: DeserializeSeed<'de>>(json: &'de [u8], seed: S) -> serde_json::Result<S::Value> {
    if is_deep(json) {
        return Err(Error::custom(format!("it has more than {LEVELS} arrays inside of each other")));
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = seed.deserialize(&mut reader)?;
    reader.end()?;
    Ok(read)
}

/// Whether there are more levels than may be, as far as it is JSON.
fn is_deep(json: &[u8]) -> bool {
    let (mut levels, mut is_text, mut is_escaped) = (0_usize, false, false);
    json.iter().any(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => levels += 1,
            b']' | b'}' if !is_text => levels = levels.saturating_sub(1),
            _ => {}
        }
        levels > LEVELS
    })
}

struct Several<'r, 'de>(&'r mut Room<'de>);

impl<'de> DeserializeSeed<'de> for Several<'_, 'de> {
    type Value = Vec<Command>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Command>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Several<'_, 'de> {
    type Value = Vec<Command>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of commands")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Vec<Command>, A::Error> {
        let mut commands = Vec::new();
        while let Some(command) = array.next_element_seed(Words(self.0))? {
            take(&mut self.0.commands, self.0.limits.commands, "commands")?;
            commands.push(command);
        }
        Ok(commands)
    }
}

struct Words<'r, 'de>(&'r mut Room<'de>);

impl<'de> DeserializeSeed<'de> for Words<'_, 'de> {
    type Value = Command;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Command, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Words<'_, 'de> {
    type Value = Command;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command, which is an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Command, A::Error> {
        let words = &mut self.0.command;
        while let Some(json) = array.next_element::<&RawValue>()? {
            take(&mut self.0.words, self.0.limits.words, "words")?;
            words.push(json.get());
        }
        // Room for all of them at once: what grows is for a while there twice.
        let mut packed = Cmd::with_capacity(words.len(), words.iter().map(|json| json.len()).sum());
        for json in words.drain(..) {
            packed.arg(&*word(json).map_err(A::Error::custom)?);
        }
        Ok(Command(packed))
    }
}

/// The bytes of a name or an argument.
fn word(json: &str) -> Result<Cow<'_, [u8]>, String> {
    let is_plain = || !json.contains('\\');
    match json.as_bytes() {
        [b'"', text @ .., b'"'] if is_plain() => Ok(text.into()),
        [b'"', ..] => match serde_json::from_str::<String>(json) {
            Ok(text) => Ok(text.into_bytes().into()),
            Err(why) => Err(why.to_string()),
        },
        [b'{' | b'[' | b'n', ..] => Err("a word of a command is a string, a number or a boolean".to_owned()),
        number_or_boolean => Ok(number_or_boolean.into()),
    }
}

#[cfg(test)]
impl PartialEq for Command {
    fn eq(&self, other: &Command) -> bool {
        self.words().eq(other.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMANDS: usize = 10_000;
    const WORDS: usize = 100_000;
    const LIMITS: RequestLimits =
        RequestLimits { bytes: 1 << 20, commands: COMMANDS, words: WORDS, answer_bytes: 1 << 20 };

    fn words(words: &[&str]) -> Command {
        Command::new(words)
    }

    #[test]
    fn words_are_strings_numbers_and_booleans() {
        let read = |json: &str| Command::one(json.as_bytes(), LIMITS).map_err(|error| error.to_string());
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
            let refusal = words(refused).check(true).unwrap_err().to_string();
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
            assert!(words(allowed).check(true).is_ok(), "{allowed:?}");
        }
        assert!(matches!(words(&[]).check(true), Err(Refusal::Empty)));
    }

    #[test]
    fn what_is_for_data_is_in_order_and_available() {
        let for_data: Vec<&str> = FOR_DATA.split(' ').collect();
        assert!(UNAVAILABLE.is_sorted() && for_data.is_sorted());
        assert!(for_data.iter().all(|name| !UNAVAILABLE.contains(name)));
    }

    #[test]
    fn what_admins_do_is_refused_unless_it_is_allowed() {
        for admins in [
            &["CONFIG", "SET", "maxmemory", "1"][..],
            &["config", "get", "*"],
            &["FLUSHALL"],
            &["FlushDB", "ASYNC"],
            &["SCRIPT", "FLUSH"],
            &["SCRIPT", "KILL"],
            &["SCRIPT"],
            &["FUNCTION", "LOAD", "x"],
            &["ACL", "SETUSER", "x"],
            &["MODULE", "LOAD", "x"],
            &["SAVE"],
            &["BGREWRITEAOF"],
            &["SWAPDB", "0", "1"],
            &["RESTORE", "k", "0", "x"],
            &["DEBUGGER"],
            &["NOSUCH"],
        ] {
            let name = admins[0].to_uppercase();
            let refusal = words(admins).check(false).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("ERR Command is not available: '{name}'")), "{refusal}");
            assert!(refusal.contains("--allow-admin"), "{refusal}");
            assert!(words(admins).check(true).is_ok(), "{admins:?}");
        }
        for data in [&["SCRIPT", "load", "return 1"][..], &["script", "EXISTS", "x"], &["evalsha", "x", "0"]]
        {
            assert!(words(data).check(false).is_ok(), "{data:?}");
        }
    }

    #[test]
    fn more_than_the_room_is_refused_while_it_is_read() {
        let several = |one: &str, times: usize| format!("[{}]", vec![one; times].join(","));
        assert_eq!(
            Command::several(several(r#"["A"]"#, COMMANDS).as_bytes(), LIMITS).unwrap().len(),
            COMMANDS
        );
        for (json, says) in [
            (several(r#"["A"]"#, COMMANDS + 1), "it has more than 10000 commands"),
            (several("[]", COMMANDS + 1), "it has more than 10000 commands"),
            (several(&several("1", WORDS / 100), 101), "it has more than 100000 words"),
        ] {
            let why = Command::several(json.as_bytes(), LIMITS).unwrap_err().to_string();
            assert!(why.starts_with(says), "{why}");
        }
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let why = |levels: usize| Command::one(deep(levels).as_bytes(), LIMITS).unwrap_err().to_string();
        assert!(why(LEVELS).contains("a string, a number or a boolean"), "{}", why(LEVELS));
        assert_eq!(why(LEVELS + 1), "it has more than 128 arrays inside of each other");
        let text = format!(r#"["SET","k","\\\"{}"]"#, "[".repeat(LEVELS + 1));
        assert!(Command::one(text.as_bytes(), LIMITS).is_ok(), "what is in a text is no level");
        assert!(Command::one(several("1", WORDS).as_bytes(), LIMITS).is_ok());
        assert!(Command::one(several("1", WORDS + 1).as_bytes(), LIMITS).is_err());
    }
}
