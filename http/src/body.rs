//! How much of a body is read, and what is said of one that is too long.

use crate::Problem;

/// The largest JSON body that is read as a whole.
pub const JSON_BYTES: usize = 16 << 20;
/// The largest JSON body that says one thing.
pub const DOCUMENT_BYTES: usize = 64 << 10;
/// The most items of a JSON array.
pub const JSON_ITEMS: usize = 1_000;

/// The most bytes of a payload.
#[derive(Clone, Copy, Debug)]
pub struct PayloadLimit {
    /// How many.
    pub bytes: usize,
    /// The setting that says so.
    pub setting: &'static str,
}

impl PayloadLimit {
    /// A payload is over the limit.
    pub fn exceeded(self) -> Problem {
        let PayloadLimit { bytes, setting } = self;
        let detail = format!(
            "the payload is over {bytes} bytes: store it elsewhere and publish where it is, or raise {setting}"
        );
        Problem::too_large("payload_too_large", detail)
    }
}

/// A JSON body is over [`JSON_BYTES`].
pub fn json_too_large() -> Problem {
    Problem::too_large(
        "body_too_large",
        "the body is over 16 MiB: send fewer items at once, or a batch as NDJSON, which has no limit",
    )
}

/// A JSON body is over [`DOCUMENT_BYTES`].
pub fn document_too_large() -> Problem {
    Problem::too_large("body_too_large", "the body is over 64 KiB: nothing that is read here is as long")
}

/// A JSON array has more than [`JSON_ITEMS`].
pub fn too_many_items() -> Problem {
    let detail = format!(
        "the array has more than {JSON_ITEMS} items: send several arrays, or a batch as NDJSON, which has no limit"
    );
    Problem::too_large("too_many_items", detail)
}

/// There is a body where none is read: it would hide that its sender has gone, and what it says would be ignored.
pub fn unexpected() -> Problem {
    Problem::bad("unexpected_body", "no body is read here: pass options in the query")
}
