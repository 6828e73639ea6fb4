use serde::{Deserialize, Serialize};

use super::base::{Base, Timer};
use crate::{Key, Millis, Pacing};

/// When what waits for company leaves.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Pace {
    /// When such things last left, and when jobs were last asked for.
    left: Option<Millis>,
    asked: Option<Millis>,
    timer: Option<Key>,
}

impl Base {
    /// How long things wait for company at most.
    fn gap_ms(&self) -> u64 {
        let waits = self.allowance.is_none() && !self.config.same_clock && !self.draining;
        if waits { self.config.gap_ms } else { 0 }
    }

    /// Whether publishes, verdicts and reserves wait for each other.
    pub(super) fn is_thrifty(&self) -> bool {
        self.config.pacing == Pacing::Thrifty
    }

    /// Whether what waits for company leaves now.
    pub(super) fn leaves(&self) -> bool {
        self.is_over(self.pace.left)
    }

    /// Whether the last reserve left so long ago that the next one waits for nothing.
    pub(super) fn asks(&self) -> bool {
        self.is_over(self.pace.asked)
    }

    fn is_over(&self, last: Option<Millis>) -> bool {
        last.is_none_or(|last| self.now >= last + self.gap_ms())
    }

    /// What waited has left.
    pub(super) fn has_left(&mut self) {
        self.pace.left = Some(self.now);
    }

    /// A reserve has left.
    pub(super) fn has_asked(&mut self) {
        self.pace.asked = Some(self.now);
    }

    /// Something waits: it is looked at again when its time has come.
    pub(super) fn wait_for_gap(&mut self) {
        if self.pace.timer.is_none() {
            let gap_ms = self.gap_ms();
            let last = [self.pace.left, self.pace.asked].into_iter().flatten().map(|last| last + gap_ms);
            let at = last.filter(|at| *at > self.now).min().unwrap_or(self.now + 1);
            self.pace.timer = Some(self.wheel.insert(at, Timer::Gap));
        }
    }

    pub(super) fn handle_gap(&mut self) {
        self.pace.timer = None;
    }
}
