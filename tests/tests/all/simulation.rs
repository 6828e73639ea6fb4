//! The simulator over many seeds, the plans that once failed, and the proof that its alarm rings.
