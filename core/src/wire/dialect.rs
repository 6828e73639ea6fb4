use super::Value;
use super::decode::{decode, decode_delivery};
use super::encode::{Args, Form, encode, encode_delivery};
use crate::{Command, Keyspace, Kind, Reply, UnixMicros};

/// Which commands a driver writes, and whose replies it reads: a program links no more than its drivers speak.
pub trait Dialect: Copy {
    /// Writes a command; see [`encode`].
    fn encode<A: Args>(
        self,
        keys: &Keyspace,
        command: &Command,
        form: Form,
        clock: Option<UnixMicros>,
        out: &mut A,
    );

    /// Reads the reply to a command; see [`decode`].
    fn decode(self, kind: Kind, value: Value) -> Reply;
}

/// All commands.
#[derive(Clone, Copy, Debug)]
pub struct All;

/// Open, reserve, settle, extend, peek and tend: for an engine that is told no more than
/// [`open`](crate::Engine::open) and the fate of the jobs it hands out. Other commands are written as no words, and their
/// replies are broken.
#[derive(Clone, Copy, Debug)]
pub struct Delivery;

impl Dialect for All {
    fn encode<A: Args>(
        self,
        keys: &Keyspace,
        command: &Command,
        form: Form,
        clock: Option<UnixMicros>,
        out: &mut A,
    ) {
        encode(keys, command, form, clock, out);
    }

    fn decode(self, kind: Kind, value: Value) -> Reply {
        decode(kind, value)
    }
}

impl Dialect for Delivery {
    fn encode<A: Args>(
        self,
        keys: &Keyspace,
        command: &Command,
        form: Form,
        clock: Option<UnixMicros>,
        out: &mut A,
    ) {
        encode_delivery(keys, command, form, clock, out);
    }

    fn decode(self, kind: Kind, value: Value) -> Reply {
        decode_delivery(kind, value)
    }
}
