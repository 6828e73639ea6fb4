use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ulid::Ulid;

/// Draws ULIDs that sort by the time of their drawing, those of one millisecond too.
pub(crate) struct Ulids(Mutex<Ulid>);

impl Ulids {
    /// Fails if the operating system gives no randomness.
    pub(crate) fn new() -> io::Result<Ulids> {
        random().map(|random| Ulids(Mutex::new(Ulid::from_parts(0, random))))
    }

    /// The next one.
    pub(crate) fn draw(&self) -> Ulid {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.draw_at(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
    }

    fn draw_at(&self, unix_ms: u64) -> Ulid {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = match last.increment() {
            Ok(next) if unix_ms <= last.timestamp_ms() => next,
            // Without randomness the old one is as good: it was random once, and is counted on.
            _ => Ulid::from_parts(
                unix_ms.max(last.timestamp_ms()),
                random().unwrap_or_else(|_| last.random() + 1),
            ),
        };
        *last
    }
}

/// Random bits for a ULID, of which the first is 0: within a millisecond it is counted up.
fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u128::from_be_bytes(bytes) >> (128 - Ulid::RAND_BITS + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_drawn_later_sort_later_even_when_the_clock_goes_back() {
        let ulids = Ulids::new().unwrap();
        let drawn: Vec<String> = [5, 5, 5, 9, 3, 9, 10].map(|ms| ulids.draw_at(ms).to_string()).into();
        assert!(drawn.is_sorted_by(|a, b| a < b), "{drawn:?}");
        assert!(drawn.iter().all(|id| id.len() == 26), "{drawn:?}");
        assert_eq!(Ulid::from_string(&drawn[0]).unwrap().timestamp_ms(), 5);
    }

    #[test]
    fn two_drawers_draw_different_ones() {
        let (one, other) = (Ulids::new().unwrap(), Ulids::new().unwrap());
        assert_ne!(one.draw_at(5), other.draw_at(5));
    }
}
