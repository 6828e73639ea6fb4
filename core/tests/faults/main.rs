//! What engines promise while Redis changes under them: over the store in memory, on virtual time.

mod bed;
mod clocks;
mod deployment;
mod memory;
mod nonsense;
mod requests;
mod takes;
