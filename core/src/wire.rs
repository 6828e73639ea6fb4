//! The one place that knows how commands are written and replies are read, whatever carries them.
//!
//! [`encode`] hands a command's words to an [`Args`]: RESP arguments, JSON strings, plain bytes. The driver turns its
//! transport's values into [`Value`] and [`decode`] makes a [`Reply`](crate::Reply) of any of them, without failing.

mod decode;
mod dialect;
mod encode;
mod refusal;

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

pub use decode::decode;
pub use dialect::{All, Delivery, Dialect};
pub use encode::{Args, Form, LAYOUT, LAYOUT_TEXT, encode, read_layout};
pub use refusal::{Refusal, refusal};

/// A reply as any transport of Redis carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Value {
    Nil,
    Int(i64),
    Bytes(Bytes),
    Array(Vec<Value>),
    /// `CODE text`, as Redis sends it.
    Error(String),
}
