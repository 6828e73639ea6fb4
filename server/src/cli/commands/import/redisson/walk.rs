use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher};
use std::time::Instant;

use bytes::Bytes;
use delayline_tokio::redis::cmd;
use delayline_tokio::{JobId, QueueName, UnixMs};
use sha2::{Digest, Sha256};

use super::super::arrival::Arrival;
use super::super::journal::Claim;
use super::super::mover::{Candidate, Mover};
use super::super::origin::{End, Origin};
use super::super::report::Place;
use super::element;
use super::keys::Keys;
use crate::failure::Failure;

const PAGE: usize = 500;
/// How many bytes of elements are held at a time; one element may be more.
const BYTES: usize = 4 << 20;
/// How many bytes of a hash an id tells.
const ID_BYTES: usize = 16;
const PEEK: &str = include_str!("peek.lua");

const NOWHERE_ELSE: &str =
    "it is in the list of elements but has no due time: Redisson would never deliver it";
const NEVER: &str = "it is due at no time";

/// An element and its score.
type Scored = (Vec<u8>, Vec<u8>);

/// Goes through all that Redisson keeps of a delayed queue, page by page.
pub(super) struct Walk<'a> {
    mover: &'a mut Mover,
    keys: Keys,
    queue: QueueName,
    with_ready: bool,
    /// Elements that are due carry nothing that tells them apart: they are numbered, by run and place.
    run: u64,
    number: u64,
}

impl Walk<'_> {
    pub(super) fn new(mover: &mut Mover, keys: Keys, queue: QueueName, with_ready: bool) -> Walk<'_> {
        let run = RandomState::new().build_hasher().finish();
        Walk { mover, keys, queue, with_ready, run, number: 0 }
    }

    /// Counts what there is, and shows progress from here on.
    pub(super) async fn count_before(&mut self) -> Result<(), Failure> {
        let counts = self.count().await?;
        self.mover.found_before(counts);
        Ok(())
    }

    /// Counts what is left, and tells what Redisson has forgotten.
    pub(super) async fn count_after(&mut self) -> Result<(), Failure> {
        let counts = self.count().await?;
        self.mover.found_after(counts);
        self.tell_of_orphans().await
    }

    async fn count(&mut self) -> Result<Vec<(Place, u64)>, Failure> {
        let delayed = self.mover.source.ask(cmd("ZCARD").arg(&self.keys.timeouts)).await?;
        let journal = self.mover.journal.count(&mut self.mover.source).await?;
        let mut counts = vec![(Place::Delayed, delayed), (Place::Journal, journal)];
        if self.with_ready {
            let ready = self.mover.source.ask(cmd("LLEN").arg(&self.keys.ready)).await?;
            counts.push((Place::Ready, ready));
        }
        Ok(counts)
    }

    /// Looks at all there is once; answers how much was moved.
    pub(super) async fn pass(&mut self) -> Result<u64, Failure> {
        let moved = |walk: &Walk| {
            let total = walk.mover.report.total();
            total.moved + total.already_there
        };
        let before = moved(self);
        self.mover.report.begin_pass();
        if self.mover.is_dry() {
            let row = self.mover.report.row(Place::Journal);
            row.moved = row.before;
        } else {
            self.go_on_from_the_journal().await?;
            self.ages().await?;
        }
        if self.with_ready {
            self.ready().await?;
        }
        self.timeouts().await?;
        Ok(if self.mover.is_stopped() { 0 } else { moved(self) - before })
    }

    /// Publishes what a run that was broken off had taken: all of it, since queues are resumed though told to stop.
    async fn go_on_from_the_journal(&mut self) -> Result<(), Failure> {
        let mut left = 0;
        loop {
            let page = self.peek("sorted", self.mover.journal.key().to_owned(), None, left).await?;
            if page.is_empty() {
                break;
            }
            let mut candidates = Vec::new();
            for (entry, score) in page {
                let due_ms = milliseconds(&score).unwrap_or(0);
                if let Some(candidate) = self.of_entry(&entry, due_ms) {
                    candidates.push(candidate);
                } else {
                    left += 1;
                    self.leave(Place::Journal, "it is not an entry of an import", &entry);
                }
            }
            self.mover.prepare(&candidates).await?;
            self.mover.deliver(candidates).await?;
        }
        Ok(())
    }

    /// Moves what is due later, by age: there each is found at once in the list too, wherever it is in the sorted set.
    async fn ages(&mut self) -> Result<(), Failure> {
        let origin = self.delayed();
        let mut left = 0;
        while !self.mover.is_stopped() {
            let (ages, timeouts) = (self.keys.ages.clone(), self.keys.timeouts.clone());
            let page = self.peek("list", ages, Some(timeouts), left).await?;
            if page.is_empty() {
                break;
            }
            let mut candidates = Vec::new();
            for (element, score) in page {
                match self.delayed_candidate(&element, &score) {
                    Ok(candidate) if candidate.arrival.check().is_ok() => candidates.push(candidate),
                    // What has a score is told of where the sorted set is gone through.
                    _ => left += 1,
                }
            }
            left += self.transfer(&origin, candidates).await?;
        }
        Ok(())
    }

    /// Moves what the list does not tell of, and says what cannot be moved.
    async fn timeouts(&mut self) -> Result<(), Failure> {
        let origin = self.delayed();
        let mut left = 0;
        while !self.mover.is_stopped() {
            let page = self.peek("sorted", self.keys.timeouts.clone(), None, left).await?;
            if page.is_empty() {
                break;
            }
            let mut candidates = Vec::new();
            for (element, score) in page {
                match self.delayed_candidate(&element, &score) {
                    Ok(candidate) => candidates.push(candidate),
                    Err(why) => {
                        left += 1;
                        self.leave(Place::Delayed, why, &element);
                    }
                }
            }
            left += self.transfer(&origin, candidates).await?;
        }
        Ok(())
    }

    /// Elements of the list that the sorted set does not have: what is left there once the others are moved.
    async fn tell_of_orphans(&mut self) -> Result<(), Failure> {
        let (mut at, mut orphans, mut sample) = (0, 0_u64, None);
        while !self.mover.is_stopped() {
            let (ages, timeouts) = (self.keys.ages.clone(), self.keys.timeouts.clone());
            let page = self.peek("list", ages, Some(timeouts), at).await?;
            if page.is_empty() {
                break;
            }
            at += page.len();
            for (element, _) in page.into_iter().filter(|(_, score)| score.is_empty()) {
                orphans += 1;
                sample.get_or_insert(element);
            }
        }
        if let Some(sample) = sample {
            self.mover.report.notes.push(format!(
                "{orphans} elements of {} were left: {NOWHERE_ELSE}. One of them has {} bytes",
                self.keys.ages,
                sample.len()
            ));
        }
        Ok(())
    }

    /// Moves what is due and was not consumed, the oldest first. Due times a millisecond apart keep the order.
    async fn ready(&mut self) -> Result<(), Failure> {
        let length: u64 = self.mover.source.ask(cmd("LLEN").arg(&self.keys.ready)).await?;
        let first_due = self.mover.now().0.saturating_sub(length);
        let origin = self.list();
        let (mut left, mut position) = (0_usize, 0);
        while !self.mover.is_stopped() {
            let page = self.peek("list", self.keys.ready.clone(), None, left).await?;
            if page.is_empty() {
                break;
            }
            let mut candidates = Vec::new();
            for (element, _) in page {
                let due_ms = (first_due + position).min(self.mover.now().0);
                position += 1;
                self.number += 1;
                let (run, number) = (self.run.to_be_bytes(), self.number.to_be_bytes());
                let entry = [&b"r"[..], &run, &number, &element].concat();
                match self.of_entry(&entry, due_ms) {
                    Some(candidate) => candidates.push(Candidate { place: Place::Ready, ..candidate }),
                    None => left += 1,
                }
            }
            left += self.transfer(&origin, candidates).await?;
        }
        Ok(())
    }

    async fn transfer(&mut self, origin: &Origin, candidates: Vec<Candidate>) -> Result<usize, Failure> {
        let left = self.mover.transfer(origin, candidates).await?;
        Ok(usize::try_from(left).unwrap_or(usize::MAX))
    }

    fn delayed_candidate(&self, element: &[u8], score: &[u8]) -> Result<Candidate, &'static str> {
        element::read(element)?;
        let due_ms = milliseconds(score).ok_or(NEVER)?;
        let entry = [b"d", element].concat();
        let candidate = self.of_entry(&entry, due_ms).ok_or(NEVER)?;
        let claim = Claim { score: score.to_vec(), ..candidate.claim };
        Ok(Candidate { place: Place::Delayed, claim, ..candidate })
    }

    /// The job of an entry of the journal: a letter for where it was; for what was due, the run and a number; the element.
    /// The id follows from the entry, so that it is the same in every run.
    fn of_entry(&self, entry: &[u8], due_ms: u64) -> Option<Candidate> {
        let (letter, rest) = entry.split_first()?;
        let (origin, identity, element, payload) = match letter {
            b'd' => (self.delayed(), rest, rest, element::read(rest).ok()?),
            b'r' => {
                let (identity, payload) = rest.split_at_checked(16)?;
                (self.list(), identity, payload, payload)
            }
            _ => return None,
        };
        let arrival = Arrival {
            queue: self.queue.clone(),
            id: id(identity)?,
            due: UnixMs(due_ms),
            ttl: None,
            read: Instant::now(),
            attempts: None,
            headers: Vec::new(),
            body: Bytes::copy_from_slice(payload),
            dead: None,
        };
        let score = if *letter == b'd' { due_ms.to_string().into_bytes() } else { Vec::new() };
        let claim = Claim { element: element.to_vec(), score, entry: entry.to_vec(), due_ms };
        Some(Candidate { place: Place::Journal, claim, arrival, body: None, origin })
    }

    async fn peek(
        &mut self,
        kind: &str,
        key: String,
        beside: Option<String>,
        at: usize,
    ) -> Result<Vec<Scored>, Failure> {
        let mut eval = cmd("EVAL");
        eval.arg(PEEK).arg(1 + usize::from(beside.is_some())).arg(key).arg(beside);
        eval.arg(kind).arg(at).arg(PAGE).arg(BYTES);
        self.mover.source.ask(&eval).await
    }

    fn delayed(&self) -> Origin {
        let Keys { timeouts, ages, .. } = &self.keys;
        Origin::SortedAndListed { key: timeouts.clone().into_bytes(), list: ages.clone().into_bytes() }
    }

    fn list(&self) -> Origin {
        Origin::List { key: self.keys.ready.clone().into_bytes(), oldest: End::Head }
    }

    fn leave(&mut self, place: Place, why: &str, element: &[u8]) {
        self.mover.report.leave(place, why, element);
        self.mover.bar.inc(1);
    }
}

/// An id that tells where the job came from and follows from what identifies it there.
fn id(identity: &[u8]) -> Option<JobId> {
    let digest = Sha256::digest(identity);
    let mut id = "redisson-".to_owned();
    for byte in digest.iter().take(ID_BYTES) {
        write!(id, "{byte:02x}").ok()?;
    }
    id.parse().ok()
}

/// A score as a time: rounded up, so that nothing is early; what is before 1970 is long due.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is in range, or saturates
fn milliseconds(score: &[u8]) -> Option<u64> {
    let score: f64 = std::str::from_utf8(score).ok()?.parse().ok()?;
    score.is_finite().then(|| score.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_a_time_that_is_never_early() {
        assert_eq!(milliseconds(b"1763700000000"), Some(1_763_700_000_000));
        assert_eq!(milliseconds(b"1763700000000.25"), Some(1_763_700_000_001));
        assert_eq!(milliseconds(b"-5"), Some(0));
        for bad in [&b""[..], b"inf", b"nan", b"x", b"\xff"] {
            assert_eq!(milliseconds(bad), None);
        }
    }

    #[test]
    fn an_id_follows_from_the_element() {
        let id = |bytes: &[u8]| super::id(bytes).unwrap().to_string();
        assert_eq!(id(b"a"), id(b"a"));
        assert_ne!(id(b"a"), id(b"b"));
        assert_eq!(id(b"a").len(), "redisson-".len() + 2 * ID_BYTES);
    }
}
