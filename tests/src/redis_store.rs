use delayline_core::wire::{Args, Form, Value, decode, encode};
use delayline_core::{Command, Identity, Keyspace, Prefix, QueueName, Refusal, Reply, Shards, UnixMicros};
use delayline_embedded::{Bug, Damage, Key};
use delayline_lua::Script;

use crate::{Connection, Dump, RedisServer, dump_words, dumped, metered, patched, words};

/// Carries out commands on a real server, at times that the caller sets.
#[derive(Debug)]
pub struct RedisStore {
    keys: Keyspace,
    connection: Connection,
    listener: Connection,
    heard: Vec<(String, String)>,
    planted: Vec<Planted>,
}

/// What is sent in a script's place.
#[derive(Debug)]
struct Planted {
    script: &'static Script,
    sha1: String,
    source: String,
}

impl RedisStore {
    /// A store on a server's only database.
    pub fn new(server: &RedisServer, shards: Shards) -> RedisStore {
        let keys = Keyspace::new(&Prefix::default(), shards);
        RedisStore {
            keys,
            connection: server.connect(),
            listener: server.connect(),
            heard: Vec::new(),
            planted: Vec::new(),
        }
    }

    /// The names of its keys.
    pub fn keys(&self) -> &Keyspace {
        &self.keys
    }

    /// For what is no command of delayline.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Breaks the store: the server runs scripts that make this mistake from now on, and no other. They are [`metered`].
    ///
    /// # Panics
    /// If the connection is lost, or the bug's patch does not fit the scripts.
    pub fn plant(&mut self, bug: Option<Bug>) {
        let mut patched = bug.map(patched).unwrap_or_default();
        for script in delayline_lua::all() {
            if patched.iter().all(|(of, _)| of.name != script.name) {
                patched.push((script, script.written().to_owned()));
            }
        }
        self.run_instead(patched.into_iter().map(|(script, source)| (script, metered(&source))));
    }

    /// The server runs these sources in the place of these scripts from now on.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn run_instead(&mut self, sources: impl IntoIterator<Item = (&'static Script, String)>) {
        let planted = sources.into_iter().map(|(script, source)| {
            let sha1 = shown(&self.connection.ask(&["SCRIPT", "LOAD", &source]));
            Planted { script, sha1, source }
        });
        self.planted = planted.collect();
    }

    /// Carries out a command at `time`, or by the server's own clock.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn execute(&mut self, time: Option<UnixMicros>, command: &Command) -> Reply {
        let reply = decode(command.kind(), self.raw(time, command, Form::Sha));
        if reply == Reply::Refused(Refusal::NoScript) {
            return decode(command.kind(), self.raw(time, command, Form::Source));
        }
        reply
    }

    /// What the server answers to a command, as it answers it.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn raw(&mut self, time: Option<UnixMicros>, command: &Command, form: Form) -> Value {
        let mut words = packed(&self.keys, command, form, time);
        for Planted { script, sha1, source } in &self.planted {
            match words.get_mut(1) {
                Some(word) if word == script.sha1().as_bytes() => *word = sha1.clone().into_bytes(),
                // Only what is longer than a name is worth being compared with sources.
                Some(word) if word.len() > 40 && word == script.source().as_bytes() => {
                    *word = source.clone().into_bytes();
                }
                _ => {}
            }
        }
        self.connection.call(&words).expect("a living connection")
    }

    /// Hears the wake-ups of an engine in all shards from now on, and what is said of the heads.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn subscribe(&mut self, engine: Identity) {
        for shard in self.keys.shards().iter() {
            for channel in [self.keys.wake_channel(shard, engine), self.keys.head_channel(shard)] {
                self.listener.send(&["SUBSCRIBE", &channel]).expect("a living connection");
            }
        }
        self.told();
    }

    /// Hears no wake-ups of the engine any more.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn unsubscribe(&mut self, engine: Identity) {
        for shard in self.keys.shards().iter() {
            let channel = self.keys.wake_channel(shard, engine);
            self.listener.send(&["UNSUBSCRIBE", &channel]).expect("a living connection");
        }
        self.told();
    }

    /// What was heard since it was asked last: channels and messages, in order.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn heard(&mut self) -> Vec<(String, String)> {
        self.told();
        std::mem::take(&mut self.heard)
    }

    /// Takes in all that the server has told the listener so far.
    fn told(&mut self) {
        self.listener.send(&["PING"]).expect("a living connection");
        loop {
            let message = words(self.listener.receive().expect("a living connection"));
            let mut message = message.iter().map(shown);
            let mut next = || message.next().unwrap_or_default();
            match next().as_str() {
                "message" => self.heard.push((next(), next())),
                "pong" | "PONG" => return,
                _ => {}
            }
        }
    }

    /// All it holds.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn dump(&mut self) -> Dump {
        dumped(self.connection.ask(&dump_words()))
    }

    /// Writes one value over what delayline keeps, as [`delayline_embedded::Store::damage`] does.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn damage(&mut self, queue: &QueueName, damage: &Damage) {
        let words = damaging(&self.keys, queue, damage);
        self.connection.call(&words).expect("a living connection");
    }

    /// Forgets all it holds.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn clear(&mut self) {
        self.connection.ask(&["FLUSHALL"]);
    }
}

/// The words that do this damage.
pub fn damaging(keys: &Keyspace, queue: &QueueName, damage: &Damage) -> Vec<Vec<u8>> {
    let names = keys.queue_keys(queue);
    let name = |key: Key| names[key as usize].as_bytes();
    let words: [&[u8]; 4] = match damage {
        Damage::State { id, text } => [b"HSET", name(Key::State), id.as_str().as_bytes(), text],
        Damage::Meta { field, text } => [b"HSET", name(Key::Meta), field.as_bytes(), text],
        Damage::Gate { gate: Some(gate) } => [b"HSET", name(Key::Meta), b"gate", gate.as_bytes()],
        Damage::Gate { gate: None } => {
            return [b"HDEL", name(Key::Meta), b"gate"].map(<[u8]>::to_vec).into();
        }
        Damage::Score { key, id, score } => {
            let score = score.to_string();
            return [b"ZADD", name(*key), score.as_bytes(), id.as_str().as_bytes()]
                .map(<[u8]>::to_vec)
                .into();
        }
        Damage::Agenda { score } => {
            let (score, member) = (score.to_string(), format!("q{queue}"));
            return [b"ZADD", name(Key::Agenda), score.as_bytes(), member.as_bytes()]
                .map(<[u8]>::to_vec)
                .into();
        }
        Damage::Foreign { key, text } => return [b"SET", name(*key), text].map(<[u8]>::to_vec).into(),
        Damage::Lease { text } => {
            let [_, _, lease] = keys.shard_keys(keys.shards().of(queue));
            return [b"SET", lease.as_bytes(), text].map(<[u8]>::to_vec).into();
        }
        Damage::Unopened => return vec![b"UNLINK".to_vec(), keys.config().as_bytes().to_vec()],
        Damage::Unnamed => {
            return [b"HDEL", name(Key::Queues), queue.as_str().as_bytes()].map(<[u8]>::to_vec).into();
        }
    };
    words.map(<[u8]>::to_vec).into()
}

/// The words of a command, as Redis gets them.
pub fn encoded(keys: &Keyspace, command: &Command, time: Option<UnixMicros>) -> Vec<Vec<u8>> {
    packed(keys, command, Form::Sha, time)
}

fn packed(keys: &Keyspace, command: &Command, form: Form, time: Option<UnixMicros>) -> Vec<Vec<u8>> {
    struct Words(Vec<Vec<u8>>);
    impl Args for Words {
        fn arg(&mut self, bytes: &[u8]) {
            self.0.push(bytes.to_vec());
        }
    }
    let mut words = Words(Vec::new());
    encode(keys, command, form, time, &mut words);
    words.0
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}
