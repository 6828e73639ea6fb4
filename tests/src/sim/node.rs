use std::collections::BTreeMap;

use delayline_core::{Config, Engine, Identity, Millis, Token};

use super::workload::Asked;

/// A process with one engine: its clock, its callers, and whether it runs at all.
pub(super) struct Node {
    pub(super) engine: Option<Engine>,
    pub(super) config: Config,
    /// Grows with each crash, so that what was meant for a former life is known.
    pub(super) life: u32,
    pub(super) asked: BTreeMap<Token, Asked>,
    pub(super) armed_us: Option<u64>,
    /// Stands still until then; what arrives meanwhile waits.
    pub(super) paused_until_us: u64,
    pub(super) hears: bool,
    offset_ms: u64,
    drift_ppm: u64,
    tokens: u64,
}

impl Node {
    pub(super) fn new(config: Config, offset_ms: u64, drift_ppm: u64) -> Node {
        Node {
            engine: None,
            config,
            life: 0,
            asked: BTreeMap::new(),
            armed_us: None,
            paused_until_us: 0,
            hears: false,
            offset_ms,
            drift_ppm,
            tokens: 0,
        }
    }

    /// Starts afresh under a new identity.
    ///
    /// # Panics
    /// If the simulator made a config that cannot be used.
    pub(super) fn start(&mut self, identity: Identity, now_us: u64) {
        let engine = Engine::new(self.config.clone(), identity, self.clock(now_us));
        self.engine = Some(engine.expect("the simulator's configs are valid"));
        self.life += 1;
        self.armed_us = None;
    }

    pub(super) fn crash(&mut self) {
        self.engine = None;
        self.life += 1;
        self.hears = false;
        self.armed_us = None;
        self.asked.clear();
    }

    pub(super) fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// The node's own clock: offset, and fast by its drift.
    pub(super) fn clock(&self, now_us: u64) -> Millis {
        Millis(self.offset_ms + (now_us + now_us * self.drift_ppm / 1_000_000) / 1000)
    }

    /// When the node's clock first shows `at`.
    pub(super) fn when(&self, at: Millis, now_us: u64) -> u64 {
        let own_us = at.0.saturating_sub(self.offset_ms).saturating_mul(1000);
        let mut us = own_us.saturating_sub((own_us / 1_000_000 + 1) * self.drift_ppm);
        while self.clock(us) < at {
            us += 1;
        }
        us.max(now_us)
    }
}
