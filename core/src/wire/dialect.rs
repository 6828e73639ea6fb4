use super::Value;
use super::decode::{decode, decode_delivery};
use super::encode::{Args, Form, encode, encode_delivery};
use crate::{Command, Keyspace, Kind, Reply, UnixMicros};

/// Which commands a driver can write, and whose replies it can read: a program links no more than its drivers speak.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    encode: fn(&Keyspace, &Command, Form, Option<UnixMicros>, &mut dyn Args),
    decode: fn(Kind, Value) -> Reply,
}

impl Dialect {
    /// All commands, as [`encode`] and [`decode`].
    pub const ALL: Dialect =
        Dialect { encode: |keys, command, form, clock, out| encode(keys, command, form, clock, out), decode };

    /// Open, reserve, settle, extend, peek and tend: for an engine that is told no more than
    /// [`open`](crate::Engine::open) and the fate of the jobs it hands out. Other commands are written as no words, and
    /// their replies are broken.
    pub const DELIVERY: Dialect = Dialect { encode: encode_delivery, decode: decode_delivery };

    /// Writes a command; see [`encode`].
    pub fn encode(
        &self,
        keys: &Keyspace,
        command: &Command,
        form: Form,
        clock: Option<UnixMicros>,
        out: &mut dyn Args,
    ) {
        (self.encode)(keys, command, form, clock, out);
    }

    /// Reads the reply to a command; see [`decode`].
    pub fn decode(&self, kind: Kind, value: Value) -> Reply {
        (self.decode)(kind, value)
    }
}
