use super::Value;
use super::decode::{decode, decode_delivery};
use super::encode::{Args, Form, encode, encode_delivery};
use crate::{Command, Keyspace, Kind, Reply, UnixMicros};

/// Which commands a driver writes, and whose replies it reads: a program links no more than its drivers speak.
pub trait Dialect: Copy {
    /// Whether these are all commands; else they are those of [`Delivery`].
    const IS_ALL: bool;

    /// Writes a command; see [`encode`].
    fn encode<A: Args>(
        self,
        keys: &Keyspace,
        command: &Command,
        form: Form,
        clock: Option<UnixMicros>,
        out: &mut A,
    ) {
        if Self::IS_ALL {
            encode(keys, command, form, clock, out);
        } else {
            encode_delivery(keys, command, form, clock, out);
        }
    }

    /// Reads the reply to a command; see [`decode`].
    fn decode(self, kind: Kind, value: Value) -> Reply {
        if Self::IS_ALL { decode(kind, value) } else { decode_delivery(kind, value) }
    }
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
    const IS_ALL: bool = true;
}

impl Dialect for Delivery {
    const IS_ALL: bool = false;
}
