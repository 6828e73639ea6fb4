use delayline_core::{Fence, Phase, Reason, State, UnixMs, VerdictKind};

use super::input::Input;

const FIXED: usize = 46;

/// A state's text reads back as the state, and is as wide as its fields say.
///
/// # Panics
/// If not.
pub fn state(bytes: &[u8]) {
    // An extension that is no text is shown as text: it reads back as another.
    if let Some(state) = State::parse(bytes).filter(|state| !state.extension.contains('\u{fffd}')) {
        read_back(&state);
    }
    let mut input = Input::new(bytes);
    let mut four = || u16::try_from(input.number() % 10_000).unwrap_or(0);
    let (attempts, max, deliveries) = (four(), four(), four());
    let [nack, bury] = [VerdictKind::Nack, VerdictKind::Bury].map(Some);
    let verdict = input.pick(&[None, nack, Some(VerdictKind::Snooze), Some(VerdictKind::Release), bury]);
    let (delay, flags) = (input.flag(), input.byte());
    read_back(&State {
        phase: input.pick(&[Phase::Leased, Phase::Waiting, Phase::Ended, Phase::Dead]),
        fence: Fence(input.number() % (1 << 53)),
        attempts,
        verdict,
        max: max % 1_000,
        deliveries,
        flags: if delay { flags } else { flags & !State::LOST_DELAY },
        due: UnixMs(input.number() % 10_u64.pow(13)),
        extension: if delay { format!("{:08}", input.number() % 100_000_000) } else { String::new() },
        reason: Reason::new(&String::from_utf8_lossy(input.rest())),
    });
}

fn read_back(state: &State) {
    let text = state.to_string();
    assert_eq!(text.len(), FIXED + state.extension.len() + state.reason.as_str().len());
    assert_eq!(State::parse(text.as_bytes()).as_ref(), Some(state));
    assert!(State::parse(&text.as_bytes()[..FIXED - 1]).is_none());
}
