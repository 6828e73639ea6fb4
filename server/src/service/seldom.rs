use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often what goes on is spoken of.
const EVERY: Duration = Duration::from_secs(60);

/// Lets the same thing be said once a minute.
#[derive(Default)]
pub(crate) struct Seldom(Mutex<BTreeMap<&'static str, Spoken>>);

/// When it was last said, and how often it was not since.
struct Spoken {
    at: Instant,
    since: u64,
}

impl Seldom {
    /// Whether it is time to say this, and how often it was not said since the last time.
    pub(crate) fn is_due(&self, what: &'static str) -> Option<u64> {
        self.is_due_at(what, Instant::now())
    }

    fn is_due_at(&self, what: &'static str, now: Instant) -> Option<u64> {
        let mut spoken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match spoken.get_mut(what) {
            Some(last) if now.saturating_duration_since(last.at) < EVERY => {
                last.since += 1;
                None
            }
            last => {
                let since = last.map_or(0, |last| last.since);
                spoken.insert(what, Spoken { at: now, since: 0 });
                Some(since)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_said_once_a_minute_with_how_often_it_was_not() {
        let seldom = Seldom::default();
        let begun = Instant::now();
        let due = |what, seconds| seldom.is_due_at(what, begun + Duration::from_secs(seconds));
        assert_eq!(due("not_sent", 0), Some(0));
        assert_eq!(due("queue_full", 0), Some(0));
        for second in 1..60 {
            assert_eq!(due("not_sent", second), None);
        }
        assert_eq!(due("not_sent", 60), Some(59));
        assert_eq!(due("not_sent", 61), None);
        assert_eq!(due("queue_full", 61), Some(0));
    }
}
