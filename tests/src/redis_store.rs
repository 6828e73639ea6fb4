use delayline_core::wire::{Args, Form, Value, decode, encode};
use delayline_core::{Command, Identity, Keyspace, Prefix, Refusal, Reply, Shards, UnixMicros};

use crate::{Connection, Dump, RedisServer, dump_words, dumped, words};

/// Carries out commands on a real server, at times that the caller sets.
#[derive(Debug)]
pub struct RedisStore {
    keys: Keyspace,
    connection: Connection,
    listener: Connection,
}

impl RedisStore {
    /// A store on a server's only database.
    pub fn new(server: &RedisServer, shards: Shards) -> RedisStore {
        let keys = Keyspace::new(&Prefix::default(), shards);
        RedisStore { keys, connection: server.connect(), listener: server.connect() }
    }

    /// The names of its keys.
    pub fn keys(&self) -> &Keyspace {
        &self.keys
    }

    /// For what is no command of delayline.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
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
        self.connection.call(&packed(&self.keys, command, form, time)).expect("a living connection")
    }

    /// Hears the wake-ups of an engine in all shards from now on, and what is said of the heads.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn subscribe(&mut self, engine: Identity) {
        for shard in self.keys.shards().iter() {
            for channel in [self.keys.wake_channel(shard, engine), self.keys.head_channel(shard)] {
                self.listener.ask(&["SUBSCRIBE", &channel]);
            }
        }
    }

    /// What was heard since it was asked last: channels and messages, in order.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn heard(&mut self) -> Vec<(String, String)> {
        self.listener.send(&["PING"]).expect("a living connection");
        let mut heard = Vec::new();
        loop {
            let message = words(self.listener.receive().expect("a living connection"));
            let mut message = message.iter().map(shown);
            match message.next().as_deref() {
                Some("message") => {
                    heard.push((message.next().unwrap_or_default(), message.next().unwrap_or_default()));
                }
                _ => return heard,
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

    /// Forgets all it holds.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn clear(&mut self) {
        self.connection.ask(&["FLUSHALL"]);
    }
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
