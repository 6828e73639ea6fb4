use delayline_core::wire::All;
use delayline_core::{Keyspace, Transmit};
use js_sys::{JSON, Object};
use wasm_bindgen::prelude::*;

use super::object::{object, set};
use crate::rest::pipeline;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** One round trip to make. */
export interface Transmit {
  /** What to report its fate by. */
  ticket: number;
  /** The commands to send, in this order: to a pipeline, not as a transaction. All arguments are text. */
  commands: string[][];
}

/** What Redis answered to a command. Strings must have come through unharmed: where they may be bytes, give bytes. */
export type Reply = string | Uint8Array | number | bigint | boolean | null | Error | Reply[];
"#;

/// A round trip, as whoever makes it wants it.
pub(super) fn shown(keys: &Keyspace, transmit: &Transmit<'_>) -> Object {
    let commands = transmit.commands.iter().zip(transmit.forms.iter().copied());
    let json = String::from_utf8_lossy(&pipeline(All, keys, commands, None)).into_owned();
    let commands = JSON::parse(&json).unwrap_or_default();
    let shown = object(&serde_json::json!({ "ticket": transmit.ticket }));
    set(&shown, "commands", &commands);
    shown
}
