use delayline_core::wire::LAYOUT;
use delayline_core::{ConfigError, Shards};
use thiserror::Error;

use crate::Summary;

/// Why a run is to be shown as failed. What it did is done, and what it did not do comes again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// Redis did not carry out anything.
    #[error("Redis did nothing: {}. Look at the URL and the token of its REST endpoint", .why.trim_end_matches('.'))]
    Unreachable {
        /// What the last answer was, or why there was none.
        why: String,
    },
    /// The deployment has another number of shards.
    #[error(
        "this deployment has {found} shards, and {asked} were asked for: a wrong number would overlook queues"
    )]
    Shards {
        /// As configured.
        asked: u16,
        /// As fixed by whoever was first.
        found: u16,
    },
    /// The deployment has a layout that this version does not know.
    #[error(
        "this deployment has layout {found}, and this version knows {known}: use a newer one; 0 is from before layout 1 was \
         settled, and nothing reads it: use another prefix"
    )]
    Layout {
        /// As fixed by whoever was first.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// The limits, or the number of queues, cannot be kept to.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Jobs were delivered, but not all verdicts were recorded: those jobs come again.
    #[error("{} verdicts may not have been recorded, so those jobs come again: {summary}", .summary.unsettled)]
    Unsettled {
        /// What was done.
        summary: Summary,
    },
}

impl Failure {
    /// Whether a deployment is another than is asked for, by what it answered when it was opened.
    pub(crate) fn if_other(asked: Shards, layout: u32, found: Shards) -> Result<(), Failure> {
        if layout != LAYOUT {
            return Err(Failure::Layout { found: layout, known: LAYOUT });
        }
        if found != asked {
            return Err(Failure::Shards { asked: asked.count(), found: found.count() });
        }
        Ok(())
    }
}
