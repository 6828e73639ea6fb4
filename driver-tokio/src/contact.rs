use std::time::{Duration, Instant};

use delayline_core::Refusal;

/// The least time between the beginnings of two outages that are told of.
const LOSSES: Duration = Duration::from_secs(10);
/// How often a refusal that goes on is told of.
const REFUSALS: Duration = Duration::from_secs(60);
/// The pauses before connections are made anew once more, since the server refuses still. An engine that has failed for
/// long pauses for 1 to 2 s before it sends again (`core`, engine/flight.rs): with a longest pause of no more than that, one
/// of its sends may be refused, and the next one goes over a new connection.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// After so long the next refusal is another matter.
const CALM: Duration = Duration::from_secs(10);

/// What is known of contact with Redis, over all connections of a client and its workers, and what is worth a log line:
/// each outage once, and its end; a refusal once a minute.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    outage: Option<Outage>,
    was_had: bool,
    regained: Option<Instant>,
    loss_told: Option<Instant>,
    refusals_told: Vec<(Refusal, Instant)>,
    moves: u64,
    next_move: Option<Instant>,
    pause: Duration,
    left_for: Option<Refusal>,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    noticed: Instant,
    is_told: bool,
}

impl Contact {
    pub(crate) fn is_lost(&self) -> bool {
        self.outage.is_some()
    }

    /// Whether there was an answer, ever.
    pub(crate) fn was_had(&self) -> bool {
        self.was_had
    }

    /// A connection ended. That is no outage if the next one is made at once.
    pub(crate) fn broke(&mut self, now: Instant) {
        self.left_for = None;
        self.outage.get_or_insert(Outage { since: now, noticed: now, is_told: false });
    }

    /// There was no answer to what was asked at `since`, or no connection to what was dialled then: whether that is to be
    /// told.
    pub(crate) fn lost(&mut self, now: Instant, since: Instant) -> bool {
        self.left_for = None;
        if self.regained.is_some_and(|regained| since < regained) {
            return false;
        }
        let outage = self.outage.get_or_insert(Outage { since, noticed: now, is_told: false });
        if outage.is_told || self.loss_told.is_some_and(|told| now < told + LOSSES) {
            return false;
        }
        (outage.is_told, self.loss_told) = (true, Some(now));
        true
    }

    /// The server answered what was asked, or dialled, at `asked`: after how long an outage, if that is to be told. An
    /// answer to what was asked before the outage was noticed does not end it: the server may have sent the answer before
    /// it went.
    pub(crate) fn answered(&mut self, now: Instant, asked: Instant) -> Option<Duration> {
        self.was_had = true;
        let Outage { since, is_told, .. } = self.outage.take_if(|outage| outage.noticed <= asked)?;
        self.regained = Some(now);
        is_told.then_some(now.saturating_duration_since(since))
    }

    /// The server refused: whether that is to be told. Whoever is refused before there was an answer is told by an error.
    pub(crate) fn refused(&mut self, now: Instant, why: Refusal) -> bool {
        if !self.was_had {
            return false;
        }
        let told = self.refusals_told.iter_mut().find(|(known, _)| *known == why);
        match told {
            Some((_, at)) if now < *at + REFUSALS => return false,
            Some((_, at)) => *at = now,
            None => self.refusals_told.push((why, now)),
        }
        true
    }

    /// Why the latest connections that are there no more were given up, if they did not end by themselves.
    pub(crate) fn left_for(&self) -> Option<Refusal> {
        self.left_for
    }

    /// How often all connections were given up, since another server may answer by now.
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    /// A connection made after so many moves met a server that another may have taken over from: whether all are to be
    /// made anew. Pauses keep a server that goes on refusing from being dialled again and again.
    pub(crate) fn leave(&mut self, now: Instant, moves: u64, why: Refusal) -> bool {
        if moves != self.moves || self.next_move.is_some_and(|next| now < next) {
            return false;
        }
        let is_calm = self.next_move.is_none_or(|next| now > next + CALM);
        self.pause = if is_calm { FIRST_PAUSE } else { (2 * self.pause).min(LONGEST_PAUSE) };
        self.next_move = Some(now + self.pause);
        (self.moves, self.left_for) = (self.moves + 1, Some(why));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_outage_is_told_once_and_so_is_its_end() {
        let (mut contact, start) = (Contact::default(), Instant::now());
        assert!(contact.lost(start, start));
        assert!(!contact.lost(start + S, start + S));
        assert_eq!(contact.answered(start + 2 * S, start + 2 * S), Some(2 * S));
        assert_eq!(contact.answered(start + 3 * S, start + 3 * S), None);
        assert!(contact.lost(start + 60 * S, start + 50 * S));
        assert_eq!(contact.answered(start + 61 * S, start + 61 * S), Some(11 * S));
        assert!(!contact.lost(start + 62 * S, start + 55 * S), "an attempt of the outage that is over");
        assert!(!contact.is_lost());
    }

    #[test]
    fn an_answer_that_was_on_its_way_does_not_end_an_outage() {
        let (mut contact, start) = (Contact::default(), Instant::now());
        contact.answered(start, start);
        assert!(contact.lost(start + 3 * S, start + S));
        assert_eq!(contact.answered(start + 4 * S, start + 2 * S), None);
        assert!(contact.is_lost());
        contact.broke(start + 5 * S);
        assert_eq!(contact.answered(start + 6 * S, start + 4 * S), Some(5 * S));
        contact.broke(start + 7 * S);
        assert_eq!(contact.answered(start + 8 * S, start + 6 * S), None);
        assert!(contact.is_lost());
    }

    #[test]
    fn a_connection_that_is_replaced_at_once_is_no_outage() {
        let (mut contact, start) = (Contact::default(), Instant::now());
        contact.answered(start, start);
        contact.broke(start + S);
        assert_eq!(contact.answered(start + S, start + S), None);
        contact.broke(start + 2 * S);
        assert!(contact.lost(start + 3 * S, start + 3 * S));
        assert_eq!(contact.answered(start + 5 * S, start + 5 * S), Some(3 * S));
    }

    #[test]
    fn outages_that_follow_each_other_fast_are_told_when_they_last() {
        let (mut contact, start) = (Contact::default(), Instant::now());
        contact.answered(start, start);
        assert!(contact.lost(start, start));
        assert_eq!(contact.answered(start + S, start + S), Some(S));
        for second in 2..10 {
            assert!(!contact.lost(start + second * S, start + 2 * S));
        }
        assert!(contact.lost(start + 10 * S, start + 10 * S));
        assert_eq!(contact.answered(start + 11 * S, start + 11 * S), Some(9 * S));
    }

    #[test]
    fn each_refusal_is_told_once_a_minute() {
        let (mut contact, start) = (Contact::default(), Instant::now());
        assert!(!contact.refused(start, Refusal::Denied));
        contact.answered(start, start);
        let told = |contact: &mut Contact, second, why| contact.refused(start + second * S, why);
        assert!(told(&mut contact, 0, Refusal::OutOfMemory));
        assert!(!told(&mut contact, 59, Refusal::OutOfMemory));
        assert!(told(&mut contact, 59, Refusal::ReadOnly));
        assert!(told(&mut contact, 60, Refusal::OutOfMemory));
        assert!(!told(&mut contact, 118, Refusal::ReadOnly));
    }

    #[test]
    fn a_server_that_goes_on_refusing_is_left_ever_more_seldom() {
        let (mut contact, start) = (Contact::default(), Instant::now());
        let refusals = |contact: &mut Contact, ms: std::ops::Range<u32>| {
            ms.filter(|ms| contact.leave(start + *ms * MS, contact.moves(), Refusal::ReadOnly))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            refusals(&mut contact, 0..10_000),
            [0, 250, 750, 1_750, 2_750, 3_750, 4_750, 5_750, 6_750, 7_750, 8_750, 9_750]
        );
        assert_eq!(refusals(&mut contact, 30_000..31_000), [30_000, 30_250, 30_750], "calm in between");
        assert!(!contact.leave(start + 60 * S, 0, Refusal::ReadOnly), "that connection is given up already");
    }
}
