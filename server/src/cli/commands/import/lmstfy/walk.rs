use std::time::{Duration, Instant};

use delayline_tokio::redis::{cmd, pipe};
use delayline_tokio::{Namespace, UnixMs};

use super::super::arrival::Arrival;
use super::super::journal::Claim;
use super::super::mover::{Candidate, Mover};
use super::super::origin::{End, Origin};
use super::super::report::Place;
use super::body;
use super::entry::Found;
use super::handle::Handle;
use crate::failure::Failure;

/// Where lmstfy keeps every job that is due later or held, of all queues.
pub(super) const TIMERS: &str = "timer_set";

const PAGE: usize = 500;
const KEYS: usize = 1_000;
/// How many bytes of bodies are held at a time; one body may be more.
const BYTES: usize = 4 << 20;
/// Nothing is due later than this in lmstfy.
const LATEST_S: u64 = 9_999_999_999;
/// The most attempts of a job of delayline.
const ATTEMPTS: u16 = 999;
/// The header in which the listener for lmstfy's clients looks for a job's ttl: in seconds, 0 if it lives for ever.
const TTL: &str = "lmstfy-ttl";
const DEAD: &str = "dead in lmstfy";
const OUT_OF_TRIES: &str = "its last try was running in lmstfy when it was imported";

const READ: &str = include_str!("bodies.lua");
const DROP: &str = concat!(include_str!("../lock.lua"), include_str!("drop.lua"));

/// What a body's key holds: nothing, what is wrong with it, or the bytes and for how long they live on.
type Body = (Option<Vec<u8>>, Option<i64>);

/// Goes through all that lmstfy keeps, page by page.
pub(super) struct Walk<'a> {
    mover: &'a mut Mover,
    namespace: Option<Namespace>,
}

/// A list of lmstfy's.
struct List {
    key: Vec<u8>,
    place: Place,
    namespace: String,
    queue: String,
}

impl Walk<'_> {
    pub(super) fn new(mover: &mut Mover, namespace: Option<Namespace>) -> Walk<'_> {
        Walk { mover, namespace }
    }

    /// Counts what there is, and shows progress from here on.
    pub(super) async fn count_before(&mut self) -> Result<(), Failure> {
        let counts = self.count().await?;
        self.mover.found_before(counts);
        Ok(())
    }

    /// Counts what is left.
    pub(super) async fn count_after(&mut self) -> Result<(), Failure> {
        let counts = self.count().await?;
        self.mover.found_after(counts);
        Ok(())
    }

    async fn count(&mut self) -> Result<[(Place, u64); 4], Failure> {
        let (mut ready, mut dead) = (0, 0);
        let mut cursor = 0;
        loop {
            let (next, lists) = self.lists(cursor).await?;
            for list in lists {
                let length: u64 = self.mover.source.ask(cmd("LLEN").arg(&list.key)).await?;
                *(if list.place == Place::Ready { &mut ready } else { &mut dead }) += length;
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        let delayed = self.count_timers().await?;
        let journal = self.mover.journal.count(&mut self.mover.source).await?;
        Ok([(Place::Ready, ready), (Place::Delayed, delayed), (Place::Dead, dead), (Place::Journal, journal)])
    }

    async fn count_timers(&mut self) -> Result<u64, Failure> {
        if self.namespace.is_none() {
            return self.mover.source.ask(cmd("ZCARD").arg(TIMERS)).await;
        }
        let (mut at, mut count) = (0, 0);
        loop {
            let page = self.timers(at).await?;
            if page.is_empty() {
                return Ok(count);
            }
            at += page.len();
            count += page.iter().filter(|(member, _)| self.is_meant(member)).count() as u64;
        }
    }

    /// Publishes what a run that was broken off had taken: all of it, since queues are resumed though told to stop.
    async fn go_on_from_the_journal(&mut self) -> Result<(), Failure> {
        let mut unreadable = 0;
        loop {
            let mut range = cmd("ZRANGE");
            range.arg(self.mover.journal.key()).arg(unreadable).arg(unreadable + PAGE - 1).arg("WITHSCORES");
            let page: Vec<(Vec<u8>, f64)> = self.mover.source.ask(&range).await?;
            if page.is_empty() {
                break;
            }
            let mut found = Vec::new();
            for (entry, due) in page {
                match Found::of_entry(&entry, whole(due)) {
                    Ok(entry) => found.push(entry),
                    Err(why) => {
                        unreadable += 1;
                        self.mover.report.leave(Place::Journal, why, &entry);
                    }
                }
            }
            unreadable += self.finish(found).await?;
        }
        Ok(())
    }

    /// Publishes entries of the journal; answers how many stay there.
    async fn finish(&mut self, mut found: Vec<Found>) -> Result<usize, Failure> {
        let mut stay = 0;
        while !found.is_empty() {
            let (bodies, read) = self.bodies(&found).await?;
            let rest = found.split_off(bodies.len().max(1).min(found.len()));
            let (mut candidates, mut gone) = (Vec::new(), Vec::new());
            for (found, body) in found.into_iter().zip(bodies) {
                let entry = found.entry();
                match candidate(found, body, read) {
                    Ok(Some(candidate)) => candidates.push(Candidate { place: Place::Journal, ..candidate }),
                    Ok(None) => gone.push(entry),
                    Err((why, _)) => {
                        stay += 1;
                        self.mover.report.leave(Place::Journal, &why, &entry);
                    }
                }
            }
            let entries = gone.iter().map(Vec::as_slice);
            self.mover.journal.forget(&mut self.mover.source, entries, &[]).await?;
            self.mover.report.row(Place::Journal).gone += gone.len() as u64;
            self.mover.prepare(&candidates).await?;
            self.mover.deliver(candidates).await?;
            found = rest;
        }
        Ok(stay)
    }

    /// Looks at all there is once; answers how much was moved.
    pub(super) async fn pass(&mut self) -> Result<u64, Failure> {
        let moved = |walk: &Walk| {
            let total = walk.mover.report.total();
            total.moved + total.already_there + total.gone
        };
        let before = moved(self);
        self.mover.report.begin_pass();
        if self.mover.is_dry() {
            let row = self.mover.report.row(Place::Journal);
            row.moved = row.before;
        } else {
            self.go_on_from_the_journal().await?;
        }
        let mut cursor = 0;
        loop {
            let (next, lists) = self.lists(cursor).await?;
            for list in lists {
                self.list(&list).await?;
            }
            cursor = next;
            if cursor == 0 || self.mover.is_stopped() {
                break;
            }
        }
        self.timer_set().await?;
        Ok(if self.mover.is_stopped() { 0 } else { moved(self) - before })
    }

    /// A page of the lists that there are, by their keys.
    async fn lists(&mut self, cursor: u64) -> Result<(u64, Vec<List>), Failure> {
        let pattern = match &self.namespace {
            Some(namespace) => format!("[qd]/{namespace}/*"),
            None => "[qd]/*/*".to_owned(),
        };
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(KEYS);
        let (next, keys): (u64, Vec<Vec<u8>>) = self.mover.source.ask(&scan).await?;
        let lists: Vec<List> = keys.into_iter().filter_map(List::of).collect();
        let mut types = pipe();
        for list in &lists {
            types.cmd("TYPE").arg(&list.key);
        }
        let types: Vec<String> =
            if lists.is_empty() { Vec::new() } else { self.mover.source.ask_all(&types).await? };
        let lists = lists.into_iter().zip(types).filter(|(_, kind)| kind == "list");
        Ok((next, lists.map(|(list, _)| list).collect()))
    }

    /// Moves a list, the oldest element first, which is at its tail. Due times a millisecond apart keep the order.
    async fn list(&mut self, list: &List) -> Result<(), Failure> {
        let length: u64 = self.mover.source.ask(cmd("LLEN").arg(&list.key)).await?;
        let origin = Origin::List { key: list.key.clone(), oldest: End::Tail };
        let first_due = self.mover.now().0.saturating_sub(length);
        let (mut left, mut position) = (0_usize, 0);
        while !self.mover.is_stopped() {
            let mut range = cmd("LRANGE");
            let tail = isize::try_from(left).unwrap_or(isize::MAX);
            range.arg(&list.key).arg(-tail - 500).arg(-tail - 1);
            let mut page: Vec<Vec<u8>> = self.mover.source.ask(&range).await?;
            if page.is_empty() {
                break;
            }
            page.reverse();
            let mut found = Vec::new();
            for element in page {
                let due_ms = (first_due + position).min(self.mover.now().0);
                position += 1;
                match Handle::of_list(&list.namespace, &list.queue, &element) {
                    Ok(handle) => found.push(Found { place: list.place, handle, element, due_ms }),
                    Err(why) => {
                        left += 1;
                        self.leave(list.place, why, &element);
                    }
                }
            }
            left += self.transfer(&origin, found).await?;
        }
        Ok(())
    }

    /// Moves what is due later, or held by a consumer until then.
    async fn timer_set(&mut self) -> Result<(), Failure> {
        let origin = Origin::Sorted { key: TIMERS.as_bytes().to_vec() };
        let mut left = 0;
        while !self.mover.is_stopped() {
            let page = self.timers(left).await?;
            if page.is_empty() {
                break;
            }
            let mut found = Vec::new();
            for (element, score) in page {
                match (Handle::of_timer(&element), seconds(score)) {
                    (Ok(handle), _) if !self.is_of_namespace(&handle) => left += 1,
                    (Ok(handle), Some(due)) => {
                        let due_ms = due * 1_000;
                        found.push(Found { place: Place::Delayed, handle, element, due_ms });
                    }
                    (handle, _) => {
                        left += 1;
                        let why = handle.err().unwrap_or("it is due at no second");
                        self.leave(Place::Delayed, why, &element);
                    }
                }
            }
            left += self.transfer(&origin, found).await?;
        }
        Ok(())
    }

    async fn timers(&mut self, at: usize) -> Result<Vec<(Vec<u8>, f64)>, Failure> {
        let mut range = cmd("ZRANGE");
        range.arg(TIMERS).arg(at).arg(at + PAGE - 1).arg("WITHSCORES");
        self.mover.source.ask(&range).await
    }

    fn is_of_namespace(&self, handle: &Handle) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| namespace.as_str() == handle.namespace)
    }

    /// What cannot be read may be of any namespace.
    fn is_meant(&self, member: &[u8]) -> bool {
        Handle::of_timer(member).map_or(true, |handle| self.is_of_namespace(&handle))
    }

    /// Moves elements of one place; answers how many are left there.
    async fn transfer(&mut self, origin: &Origin, mut found: Vec<Found>) -> Result<usize, Failure> {
        let mut left = 0;
        while !found.is_empty() {
            let (bodies, read) = self.bodies(&found).await?;
            let rest = found.split_off(bodies.len().max(1).min(found.len()));
            let (mut candidates, mut gone) = (Vec::new(), Vec::new());
            for (found, body) in found.into_iter().zip(bodies) {
                let (place, key) = (found.place, found.handle.body_key());
                let element = found.element.clone();
                match candidate(found, body, read) {
                    Ok(Some(candidate)) => candidates.push(candidate),
                    Ok(None) => gone.push((place, element, key)),
                    Err((why, element)) => {
                        left += 1;
                        self.leave(place, &why, &element);
                    }
                }
            }
            left += self.drop_all(origin, gone).await?;
            left += usize::try_from(self.mover.transfer(origin, candidates).await?).unwrap_or(usize::MAX);
            found = rest;
        }
        Ok(left)
    }

    /// Removes elements without a body; answers how many stay.
    async fn drop_all(
        &mut self,
        origin: &Origin,
        gone: Vec<(Place, Vec<u8>, Vec<u8>)>,
    ) -> Result<usize, Failure> {
        let Some(place) = gone.first().map(|(place, ..)| *place) else { return Ok(0) };
        let count = gone.len() as u64;
        self.mover.report.row(place).gone += count;
        self.mover.bar.inc(count);
        if self.mover.is_dry() {
            return Ok(gone.len());
        }
        let (elements, keys): (Vec<_>, Vec<_>) =
            gone.into_iter().map(|(_, element, key)| (element, key)).unzip();
        let mut eval = self.mover.journal.locked(DROP, origin.key(), &keys);
        eval.arg(origin.kind()).arg(elements);
        self.mover.source.ask::<u64>(&eval).await?;
        Ok(0)
    }

    /// Reads the bodies of the first of these, as many as may be held at a time, and when that was.
    async fn bodies(&mut self, found: &[Found]) -> Result<(Vec<Body>, Instant), Failure> {
        let mut eval = cmd("EVAL");
        eval.arg(READ).arg(found.len());
        for found in found {
            eval.arg(found.handle.body_key());
        }
        eval.arg(BYTES);
        let read = Instant::now();
        let answers: Vec<Vec<delayline_tokio::redis::Value>> = self.mover.source.ask(&eval).await?;
        let part = |value| delayline_tokio::redis::from_redis_value::<Vec<u8>>(value).ok();
        let bodies = answers.into_iter().map(|answer| {
            let mut parts = answer.into_iter();
            let bytes = parts.next().and_then(part);
            let ttl = parts.next().and_then(|ttl| delayline_tokio::redis::from_redis_value(ttl).ok());
            (bytes, ttl)
        });
        Ok((bodies.collect(), read))
    }

    fn leave(&mut self, place: Place, why: &str, element: &[u8]) {
        self.mover.report.leave(place, why, element);
        self.mover.bar.inc(1);
    }
}

impl List {
    /// By its key: `q/namespace/queue` or `d/namespace/queue`.
    fn of(key: Vec<u8>) -> Option<List> {
        let parts: Vec<&str> = std::str::from_utf8(&key).ok()?.split('/').collect();
        let (place, namespace, queue) = match parts[..] {
            ["q", namespace, queue] => (Place::Ready, namespace.to_owned(), queue.to_owned()),
            ["d", namespace, queue] => (Place::Dead, namespace.to_owned(), queue.to_owned()),
            _ => return None,
        };
        Some(List { key, place, namespace, queue })
    }
}

/// The job that an element stands for; none if it has no body. What is wrong, and with which bytes, if it cannot be one.
fn candidate(found: Found, body: Body, read: Instant) -> Result<Option<Candidate>, (String, Vec<u8>)> {
    let (bytes, ttl) = match body {
        (Some(bytes), Some(ttl)) => (bytes, ttl),
        (Some(why), None) => return Err((String::from_utf8_lossy(&why).into_owned(), found.element)),
        (None, _) => return Ok(None),
    };
    let Handle { tries, id, .. } = &found.handle;
    let dead = match (found.place, tries) {
        (Place::Dead, _) => Some(DEAD),
        (_, 0) => Some(OUT_OF_TRIES),
        _ => None,
    };
    let (body, mut headers) = body::read(id, bytes).map_err(|why| (why.to_owned(), found.element.clone()))?;
    let ttl = u64::try_from(ttl).ok().filter(|_| dead.is_none());
    headers.push((TTL.to_owned(), ttl.unwrap_or(0).div_ceil(1_000).to_string()));
    let (queue, id) = found.handle.names().map_err(|error| (error.to_string(), found.element.clone()))?;
    let arrival = Arrival {
        queue,
        id,
        due: UnixMs(found.due_ms),
        ttl: ttl.map(Duration::from_millis),
        read,
        attempts: Some((*tries).clamp(1, ATTEMPTS)),
        headers,
        body,
        dead,
    };
    let claim = Claim {
        entry: found.entry(),
        score: found.score(),
        due_ms: found.due_ms,
        element: found.element.clone(),
    };
    let (origin, body) = (found.origin(), Some(found.handle.body_key()));
    Ok(Some(Candidate { place: found.place, claim, arrival, body, origin }))
}

/// A score as a second.
fn seconds(score: f64) -> Option<u64> {
    let is_second = score.fract() == 0.0 && (0.0..=1e10).contains(&score);
    is_second.then(|| whole(score)).filter(|second| *second <= LATEST_S)
}

/// A score of the journal, which is a whole number of milliseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is in range, or saturates
fn whole(score: f64) -> u64 {
    score as u64
}
