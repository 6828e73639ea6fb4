//! What an engine was told, kept in a bounded ring, and told to it again: a flight recorder.
//!
//! An engine is a function of its inputs. [`Recorded`] is an engine that hands each of them, and a digest of what was
//! decided upon it, to a [`Sink`] such as a [`Ring`]; [`Replay`] steps the same engine through them, says in words what
//! it hears and decides, and where a decision is not the one that was recorded.
//!
//! # What is kept
//!
//! Queue names, job ids, times, fences, reasons of failures, configs of queues, content types, names of headers and trace
//! contexts are kept. Bodies and the values of headers are not: of a job that is published, the lengths of body, record
//! and values are kept, and zeros stand in for the record; of one that is delivered, the body is left out and a `*` a byte
//! stands in for a value. No decision depends on what is left out; a body of more than 16 MiB counts as 16 MiB.
//!
//! # Where a replay begins
//!
//! At the making of the engine, or at a checkpoint: the whole state of the engine, without bodies. A ring begins a segment
//! with a checkpoint every quarter of its size, and forgets the oldest segment, so what it holds can always be replayed
//! exactly from its first byte. At the further checkpoints a replay compares its state to the recorded one.
//!
//! # Format
//!
//! The magic `delayline\0`, the format as two bytes (little-endian), then frames: the length as a LEB128 number, then
//! so many bytes of postcard. The first frame names the version that wrote it. Frames and inputs are only added to.

mod digest;
pub(crate) mod elided;
mod frame;
mod reader;
mod recorded;
mod replay;
mod ring;

pub use reader::{Damaged, Header, Unreadable};
pub use recorded::Recorded;
pub use replay::{Divergence, Replay, Step};
pub use ring::{Ring, Sink};
