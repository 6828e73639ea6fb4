use delayline_core::{Head, RecordError, State, UnixMs};
use delayline_tokio::{Fence, JobId, Phase, Reason};

use super::fault::Fault;
use super::mend::{Mend, key};
use super::time;

const DUE: usize = 0;
const LEASED: usize = 1;
const DEAD: usize = 2;
const EXP: usize = 3;
const BIG: usize = 4;
/// The numbers of the keys that hold scores.
const SCORES: [&str; 5] = ["5", "6", "8", "9", "11"];
const PLACES: [(usize, &str); 3] = [(LEASED, "leased"), (DEAD, "dead"), (DUE, "due")];

const LARGE_BYTES: u64 = 4096;
const LONGEST_LEASE_MS: u64 = 25 * 3_600_000;
const LEASE_MS: u64 = 30_000;
const BY_DOCTOR: &str = "its state was broken, and was rebuilt by delayline doctor";

/// All that a queue's keys say of one job, at one moment.
pub(super) struct Seen {
    pub(super) id: Vec<u8>,
    /// In `due`, `leased`, `dead`, `exp`, `big`.
    pub(super) scores: [Option<Vec<u8>>; 5],
    pub(super) state: Option<Vec<u8>>,
    pub(super) record: Option<Record>,
}

pub(super) enum Record {
    /// There is one, which was not read.
    Unread,
    Read {
        head: Vec<u8>,
        len: u64,
    },
}

/// What a job is looked at with.
pub(super) struct Ward<'a> {
    pub(super) keys: &'a [String],
    pub(super) now: UnixMs,
    /// The most attempts of jobs that say nothing themselves.
    pub(super) attempts: u16,
    /// Where to put what no command can name.
    pub(super) aside: String,
}

/// What the keys ought to say of a job, and what about that is new.
struct Ought {
    scores: [Option<Vec<u8>>; 5],
    state: Option<Vec<u8>>,
    faults: Vec<(String, String)>,
    unreadable: bool,
}

enum Legible {
    Yes(Head),
    Newer,
    No,
}

impl Ward<'_> {
    /// What is wrong with the job, if something is.
    pub(super) fn examine(&self, seen: &Seen) -> Option<Fault> {
        let shown = String::from_utf8_lossy(&seen.id).into_owned();
        if std::str::from_utf8(&seen.id).ok().and_then(|id| id.parse::<JobId>().ok()).is_none() {
            return Some(self.unnameable(seen, &shown));
        }
        let ought = match &seen.record {
            None => Ought {
                scores: Default::default(),
                state: None,
                faults: vec![("have no record in pool".into(), "take it away, counted as lost".into())],
                unreadable: false,
            },
            Some(Record::Unread) => return None,
            Some(Record::Read { head, len }) => self.ought(seen, head, *len),
        };
        if ought.faults.is_empty() {
            return None;
        }
        let (problems, changes): (Vec<String>, Vec<String>) = ought.faults.iter().cloned().unzip();
        let change = format!("job {shown}: {}", changes.join(", "));
        Some(Fault::new(
            format!("jobs {}", problems.join(", and ")),
            format!("job {shown}"),
            change,
            self.mend(seen, &ought),
        ))
    }

    fn ought(&self, seen: &Seen, head: &[u8], len: u64) -> Ought {
        let head = legible(head, len);
        let state = seen.state.as_deref().and_then(sound);
        let mut ought = Ought {
            scores: Default::default(),
            state: seen.state.clone(),
            faults: Vec::new(),
            unreadable: false,
        };
        let mut place = place(seen, state.as_ref(), &mut ought.faults);
        if matches!(head, Legible::No) && place != LEASED && place != DEAD {
            let problem = "have a record that cannot be read".to_owned();
            ought.faults.push((problem, "make it a dead letter, with the reason `unreadable`".into()));
            ought.unreadable = true;
            place = DEAD;
        }
        ought.scores[place] = Some(self.score(seen, place, state.as_ref(), &mut ought.faults));
        ought.scores[EXP] = expiry(seen, place, state.as_ref(), &mut ought.faults);
        ought.scores[BIG] = size(seen, len, &mut ought.faults);
        self.check_state(seen, state.as_ref(), place, &head, &mut ought);
        ought
    }

    fn score(
        &self,
        seen: &Seen,
        place: usize,
        state: Option<&State>,
        faults: &mut Vec<(String, String)>,
    ) -> Vec<u8> {
        let now = self.now.0;
        let Some(raw) = &seen.scores[place] else {
            // It may have been waiting for a later time, of which only the state can tell.
            let due =
                state.filter(|state| place == DUE && place_of(state.phase) == DUE).map(|state| state.due.0);
            return due.unwrap_or(now).max(now).to_string().into_bytes();
        };
        let latest = if place == LEASED { now + LONGEST_LEASE_MS } else { u64::MAX };
        if time(raw).is_some_and(|at| at <= latest) {
            return raw.clone();
        }
        let raw = String::from_utf8_lossy(raw);
        let (problem, change, at) = match place {
            LEASED => ("have a lease that ends at no time", "end its lease in 30 s", now + LEASE_MS),
            DEAD => ("died at no time", "have it dead since now", now),
            _ => ("are due at no time", "make it due now", now),
        };
        faults.push((problem.to_owned(), format!("{change} instead of at {raw}")));
        at.to_string().into_bytes()
    }

    fn check_state(
        &self,
        seen: &Seen,
        state: Option<&State>,
        place: usize,
        head: &Legible,
        ought: &mut Ought,
    ) {
        let (expires, large) = (ought.scores[EXP].is_some(), ought.scores[BIG].is_some());
        let broken = seen.state.is_some() && state.is_none();
        let needed = place != DUE;
        if state.is_none() && !broken && !needed {
            return;
        }
        let mut right = match state {
            Some(state) => state.clone(),
            None => self.rebuilt(seen, place, head, &ought.scores),
        };
        if ought.unreadable {
            right.reason = Reason::new("unreadable");
        }
        if place_of(right.phase) != place {
            right.phase = match place {
                LEASED => Phase::Leased,
                DEAD => Phase::Dead,
                _ if right.verdict.is_some() => Phase::Waiting,
                _ => Phase::Ended,
            };
        }
        set(&mut right, State::TTL, expires);
        set(&mut right, State::BIG, large);
        if place != LEASED {
            set(&mut right, State::EXPIRED, false);
        }
        if state == Some(&right) {
            return;
        }
        let fault = match (broken, state) {
            (true, _) => ("have a broken state", "rebuild its state"),
            (false, None) => ("lack their state", "rebuild its state"),
            (false, Some(_)) => ("have a state that the other keys belie", "correct its state"),
        };
        // That which moves takes its state along.
        if ought.faults.is_empty() || broken {
            ought.faults.push((fault.0.to_owned(), fault.1.to_owned()));
        }
        ought.state = Some(right.to_string().into_bytes());
    }

    /// What of a state can be told from the other keys, and from such of its parts as are still numbers.
    fn rebuilt(&self, seen: &Seen, place: usize, head: &Legible, scores: &[Option<Vec<u8>>; 5]) -> State {
        let digits = |from: usize, to: usize| {
            let part = std::str::from_utf8(seen.state.as_deref()?.get(from..to)?).ok()?;
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u64>().ok()).flatten()
        };
        let small = |from, to| digits(from, to).and_then(|number| u16::try_from(number).ok());
        let delay = match head {
            Legible::Yes(head) => head.lost_delay_ms,
            _ => None,
        };
        let attempts = match head {
            Legible::Yes(head) => head.attempts.unwrap_or(self.attempts),
            _ => self.attempts,
        };
        let least = u16::from(place == LEASED);
        let spent = small(17, 21).unwrap_or(least).clamp(least, 999);
        let at = scores[place].as_deref().and_then(time).unwrap_or(self.now.0);
        State {
            phase: match place {
                LEASED => Phase::Leased,
                DEAD => Phase::Dead,
                _ => Phase::Ended,
            },
            fence: Fence(digits(1, 17).filter(|fence| *fence < 1 << 53).unwrap_or(0)),
            attempts: spent,
            verdict: None,
            max: attempts,
            deliveries: small(25, 29).unwrap_or(spent),
            flags: if delay.is_some() { State::LOST_DELAY } else { 0 },
            due: UnixMs(if place == LEASED { at.min(self.now.0) } else { at }),
            extension: delay.map(|ms| format!("{ms:08}")).unwrap_or_default(),
            reason: Reason::new(BY_DOCTOR),
        }
    }

    /// Nothing yet, done only while the job is as it was seen.
    fn as_seen(&self, seen: &Seen) -> Mend {
        let record = seen.record.as_ref().map_or(&b"0"[..], |_| &b"1"[..]);
        let mut mend = Mend::of(self.keys)
            .beside(&self.aside)
            .only_if(&[b"HEXISTS", key::POOL.as_bytes(), &seen.id], Some(record));
        for (number, score) in SCORES.iter().zip(&seen.scores) {
            mend = mend.only_if(&[b"ZSCORE", number.as_bytes(), &seen.id], score.as_deref());
        }
        mend.only_if(&[b"HGET", key::STATE.as_bytes(), &seen.id], seen.state.as_deref())
    }

    fn mend(&self, seen: &Seen, ought: &Ought) -> Mend {
        let mut mend = self.as_seen(seen);
        let died = ought.scores[DEAD].is_some() && seen.scores[DEAD].is_none();
        for (counter, counts) in [("died", died), ("unreadable", ought.unreadable)] {
            if counts {
                mend = mend.write(&[b"HINCRBY", key::META.as_bytes(), counter.as_bytes(), b"1"]);
            }
        }
        for ((number, was), score) in SCORES.iter().zip(&seen.scores).zip(&ought.scores) {
            let number = number.as_bytes();
            mend = match score {
                _ if score == was => mend,
                Some(score) => mend.write(&[b"ZADD", number, score, &seen.id]),
                None => mend.write(&[b"ZREM", number, &seen.id]),
            };
        }
        match &ought.state {
            state if *state == seen.state => mend,
            Some(state) => mend.write(&[b"HSET", key::STATE.as_bytes(), &seen.id, state]),
            None => mend.write(&[b"HDEL", key::STATE.as_bytes(), &seen.id]),
        }
    }

    /// What has an id that no command can name can never be delivered, nor taken away.
    fn unnameable(&self, seen: &Seen, shown: &str) -> Fault {
        let mut mend = self.as_seen(seen);
        for number in SCORES {
            mend = mend.write(&[b"ZREM", number.as_bytes(), &seen.id]);
        }
        mend = mend.write(&[b"HDEL", key::STATE.as_bytes(), &seen.id]);
        let change = match &seen.record {
            None => format!("take {shown:?} away"),
            Some(_) => format!("put the record of {shown:?} into {}", self.aside),
        };
        if seen.record.is_some() {
            mend = mend.write(&[b"MOVE", key::POOL.as_bytes(), key::ASIDE.as_bytes(), &seen.id]);
        }
        Fault::new("jobs have an id that is none".into(), format!("{shown:?}"), change, mend)
    }
}

/// Where the job ought to be: where it is, if that is one place.
fn place(seen: &Seen, state: Option<&State>, faults: &mut Vec<(String, String)>) -> usize {
    let there: Vec<(usize, &str)> =
        PLACES.into_iter().filter(|(place, _)| seen.scores[*place].is_some()).collect();
    match there.as_slice() {
        [] => {
            let problem = "are in none of due, leased and dead".to_owned();
            faults.push((problem, "put it back into due".into()));
            DUE
        }
        [(place, _)] => *place,
        [(first, _), ..] => {
            let said = state.map(|state| place_of(state.phase));
            let place = said.filter(|said| seen.scores[*said].is_some()).unwrap_or(*first);
            let name = PLACES.iter().find(|(one, _)| *one == place).map_or("", |(_, name)| name);
            faults.push(("are in two places at once".into(), format!("leave it in {name} only")));
            place
        }
    }
}

fn legible(head: &[u8], len: u64) -> Legible {
    match Head::decode(head) {
        Ok(head) if (head.len() + head.metadata_len) as u64 <= len => Legible::Yes(head),
        Err(RecordError::Newer { .. }) => Legible::Newer,
        _ => Legible::No,
    }
}

/// A state as scripts write it.
fn sound(text: &[u8]) -> Option<State> {
    let state = State::parse(text)?;
    let fixed = 46 + state.extension.len();
    let delays = state.has(State::LOST_DELAY);
    let fits = delays != state.extension.is_empty();
    (fits && state.to_string().as_bytes().get(..fixed) == text.get(..fixed)).then_some(state)
}

fn place_of(phase: Phase) -> usize {
    match phase {
        Phase::Leased => LEASED,
        Phase::Dead => DEAD,
        Phase::Waiting | Phase::Ended => DUE,
    }
}

fn set(state: &mut State, flag: u8, on: bool) {
    state.flags = if on { state.flags | flag } else { state.flags & !flag };
}

/// When the job ought to expire: as it is said, if that is a time, but a dead one does not.
fn expiry(
    seen: &Seen,
    place: usize,
    state: Option<&State>,
    faults: &mut Vec<(String, String)>,
) -> Option<Vec<u8>> {
    let raw = seen.scores[EXP].as_ref()?;
    let over = place == DEAD || place == LEASED && state.is_some_and(|state| state.has(State::EXPIRED));
    if over {
        if faults.is_empty() {
            faults
                .push(("are in exp, though they do not expire any more".into(), "take it out of exp".into()));
        }
        return None;
    }
    if time(raw).is_none() {
        let raw = String::from_utf8_lossy(raw);
        faults.push(("expire at no time".into(), format!("let it never expire instead of at {raw}")));
        return None;
    }
    Some(raw.clone())
}

fn size(seen: &Seen, len: u64, faults: &mut Vec<(String, String)>) -> Option<Vec<u8>> {
    let size = (len > LARGE_BYTES).then(|| len.to_string().into_bytes());
    if size != seen.scores[BIG] {
        faults.push(("have another length than big says".into(), format!("note its length, {len} bytes")));
    }
    size
}
