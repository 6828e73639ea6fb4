use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Fence, Reason, UnixMs, VerdictKind};

/// What Redis keeps of a job that was delivered at least once, or died: fixed-width text, then the last reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Where the job is in its life.
    pub phase: Phase,
    /// The fence of the latest grant; 0 if there was none.
    pub fence: Fence,
    /// Attempts spent, the current one included.
    pub attempts: u16,
    /// The verdict by which the job came here, under `fence`.
    pub verdict: Option<VerdictKind>,
    /// The most attempts, as settled at the latest grant.
    pub max: u16,
    /// Grants so far, at most 9,999.
    pub deliveries: u16,
    /// See [`State::TTL`] and its siblings.
    pub flags: u8,
    /// When the job was last due.
    pub due: UnixMs,
    /// Eight digits of milliseconds if [`State::LOST_DELAY`] is set, else empty.
    pub extension: String,
    /// Why the last attempt failed; empty if none did. At most 1 KiB.
    pub reason: Reason,
}

/// Where a job that has a [`State`] is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Held by a consumer.
    Leased,
    /// Waiting after a verdict.
    Waiting,
    /// Waiting after its lease ended.
    Ended,
    /// A dead letter.
    Dead,
}

impl State {
    /// The job is in `exp`.
    pub const TTL: u8 = 1;
    /// The extension holds a delay for lost leases.
    pub const LOST_DELAY: u8 = 2;
    /// The record is in `big`.
    pub const BIG: u8 = 4;
    /// The job expired while it was leased.
    pub const EXPIRED: u8 = 8;
    /// Flags from here on are of newer scripts: this version's answer that there is a gate.
    pub const GATED: u8 = 0x20;

    /// Reads the text; `None` if scripts would not write it.
    pub fn parse(text: &[u8]) -> Option<State> {
        let (all, text) = (text, core::str::from_utf8(text.get(..46)?).ok()?);
        let digits = |text: &str, radix| text.chars().all(|digit| digit.is_digit(radix));
        if !(digits(text.get(1..29)?, 10) && digits(text.get(29..31)?, 16) && digits(text.get(31..46)?, 10)) {
            return None;
        }
        let reason_at = 46 + text.get(44..46)?.parse::<usize>().ok()?;
        let state = State {
            phase: Phase::of(*text.as_bytes().first()?)?,
            fence: Fence(text.get(1..17)?.parse().ok().filter(|fence| *fence < 1 << 53)?),
            attempts: text.get(17..21)?.parse().ok()?,
            verdict: match text.get(21..22)?.parse::<usize>().ok()? {
                0 => None,
                digit => Some(*VerdictKind::LEAVING.get(digit - 1)?),
            },
            max: text.get(22..25)?.parse().ok()?,
            deliveries: text.get(25..29)?.parse().ok()?,
            flags: u8::from_str_radix(text.get(29..31)?, 16).ok()?,
            due: UnixMs(text.get(31..44)?.parse().ok()?),
            extension: String::from_utf8_lossy(all.get(46..reason_at)?).into_owned(),
            reason: Reason::new(&String::from_utf8_lossy(all.get(reason_at..)?)),
        };
        let delay = state.extension.len() == 8 && digits(&state.extension, 10);
        (delay || !state.has(State::LOST_DELAY)).then_some(state)
    }

    /// Whether `flag` is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

impl Phase {
    fn of(letter: u8) -> Option<Phase> {
        match letter {
            b'L' => Some(Phase::Leased),
            b'W' => Some(Phase::Waiting),
            b'E' => Some(Phase::Ended),
            b'X' => Some(Phase::Dead),
            _ => None,
        }
    }

    fn letter(self) -> char {
        match self {
            Phase::Leased => 'L',
            Phase::Waiting => 'W',
            Phase::Ended => 'E',
            Phase::Dead => 'X',
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = VerdictKind::LEAVING.iter().position(|kind| Some(*kind) == self.verdict);
        write!(
            f,
            "{}{:016}{:04}{}{:03}{:04}{:02x}{:013}{:02}{}{}",
            self.phase.letter(),
            self.fence.0,
            self.attempts,
            verdict.map_or(0, |place| place + 1),
            self.max,
            self.deliveries,
            self.flags,
            self.due.0,
            self.extension.len(),
            self.extension,
            self.reason
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let state = State {
            phase: Phase::Ended,
            fence: Fence(1_763_700_000_000_123),
            attempts: 2,
            verdict: Some(VerdictKind::Snooze),
            max: 10,
            deliveries: 3,
            flags: State::TTL | State::LOST_DELAY,
            due: UnixMs(1_763_700_000_500),
            extension: "00015000".to_string(),
            reason: Reason::new("timeout: é"),
        };
        let text = state.to_string();
        assert!(text.starts_with("E17637000000001230002201000030317637000005000800015000timeout"), "{text}");
        assert_eq!(State::parse(text.as_bytes()), Some(state));
        for cut in 0..54 {
            assert_eq!(State::parse(&text.as_bytes()[..cut]), None);
        }
    }
}
