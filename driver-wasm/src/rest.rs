//! Redis over HTTP, as Upstash speaks it: what is sent and what an answer means, without sending it.
//!
//! A round trip is always one `POST /pipeline`, also for one command. Replies are asked for in base64 and so carry all
//! bytes; requests are JSON and cannot, so records are [armoured](delayline_core::armour).

mod answer;
mod request;
mod value;

pub use answer::{Answer, Cut, Landed, land};
pub use request::{Endpoint, EndpointError, Request, carried, pipeline};
