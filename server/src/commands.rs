mod consume;
mod publish;
mod serve;
mod stats;

pub use consume::Consume;
pub use publish::Publish;
pub use serve::{Serve, Server};
pub use stats::Stats;
