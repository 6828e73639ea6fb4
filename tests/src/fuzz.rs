//! Functions of bytes from outside, each of which holds a property or panics. libFuzzer calls them (`tests/fuzz`), and
//! so do the tests, with every file of the corpus.

mod engine;
mod http;
mod input;
mod lease;
mod names;
mod record;
mod recording;
mod reply;
mod rig;
mod span;
mod state;
mod thrift;
mod value;

pub use engine::engine;
pub use http::http;
pub use lease::lease;
pub use names::names;
pub use record::record;
pub use recording::recording;
pub use reply::reply;
pub use span::span;
pub use state::state;

/// A name, which is also that of the corpus, and what libFuzzer calls.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 9] = [
    ("engine", engine),
    ("http", http),
    ("lease", lease),
    ("names", names),
    ("record", record),
    ("recording", recording),
    ("reply", reply),
    ("span", span),
    ("state", state),
];
