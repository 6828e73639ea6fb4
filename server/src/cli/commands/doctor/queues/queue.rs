use delayline_core::{Identity, Keyspace, UnixMicros};
use delayline_tokio::QueueName;
use delayline_tokio::redis::cmd;

use super::super::wire::Wire;
use super::fault::Fault;
use super::field::{self, FIELDS, Right};
use super::job::{Record, Seen, Ward};
use super::judge::{Judge, Mode};
use super::mend::{Mend, key};
use super::{Pairs, aside, script, session, time, whole};

const SIZES: &str = include_str!("sizes.lua");
const PAGE: &str = include_str!("page.lua");
const RECOUNT: &str = include_str!("recount.lua");
const TYPES: [&str; 11] =
    ["zset", "hash", "hash", "hash", "zset", "zset", "hash", "zset", "zset", "zset", "zset"];
/// The numbers of the keys that jobs are in: first `pool`, where their records are.
const SOURCES: [usize; 7] = [4, 5, 6, 8, 9, 11, 7];
const FEWEST: u64 = 10;
const MOST: u64 = 200;
const PAGE_BYTES: u64 = 1 << 20;
const FORWARD_RETRY_MS: u64 = 10_000;
const AHEAD_MS: u64 = 3_600_000;
const LEFT_BEHIND_MICROS: u64 = 60_000_000;
const ATTEMPTS: u16 = 10;

/// How much was looked at.
#[derive(Default)]
pub(super) struct Seized {
    pub(super) queues: u64,
    pub(super) jobs: u64,
    pub(super) of_jobs: u64,
    pub(super) sessions: u64,
    pub(super) ended: u64,
}

impl Seized {
    pub(super) fn add(&mut self, other: &Seized) {
        self.queues += other.queues;
        self.jobs += other.jobs;
        self.of_jobs += other.of_jobs;
        self.sessions += other.sessions;
        self.ended += other.ended;
    }
}

/// One queue, looked at by plain reads: the scripts of delayline are not asked, since what is wrong may stop them.
pub(super) struct Patient<'a> {
    name: &'a QueueName,
    place: String,
    keys: [String; 11],
    tag: &'a str,
    /// At most so many members of each key.
    sample: u64,
}

/// What the queue's keys are and hold, at one moment.
struct Sizes {
    now: UnixMicros,
    types: Vec<String>,
    counts: Vec<u64>,
    fields: Vec<Option<Vec<u8>>>,
    /// The next future due time, the heads of due, leased, exp and dead, the time on the agenda.
    times: Vec<Vec<u8>>,
    named: bool,
}

impl<'a> Patient<'a> {
    pub(super) fn new(name: &'a QueueName, keys: &'a Keyspace, sample: u64) -> Patient<'a> {
        let tag = keys.tag(keys.shards().of(name));
        Patient { name, place: format!("queue {name}"), keys: keys.queue_keys(name), tag, sample }
    }

    /// Looks at all of it once; whether something was mended.
    pub(super) async fn examine(
        &self,
        wire: &mut Wire,
        judge: &mut Judge,
        seized: &mut Seized,
    ) -> Result<bool, String> {
        seized.queues += 1;
        let sizes = self.sizes(wire).await?;
        if self.was_left_behind(&sizes) {
            return Ok(judge.take(wire, &self.place, self.leftover(&sizes)).await);
        }
        if let Some(gate) = sizes.raw("gate").filter(|gate| !gate.is_empty()) {
            let problem =
                "it has a gate: a newer version keeps more of it than this one knows, and is to look at it";
            judge.found(&self.place, problem, String::from_utf8_lossy(gate).into_owned(), String::new());
            return Ok(false);
        }
        let mut changed = self.types(wire, judge, &sizes).await;
        changed |= self.fields(wire, judge, &sizes).await;
        if judge.mode == Mode::Repair {
            changed |= self.recount(wire, judge).await?;
        }
        let attempts = sizes.field("attempts").and_then(|text| text.parse().ok()).unwrap_or(ATTEMPTS);
        for source in SOURCES {
            changed |= self.jobs(wire, judge, source, attempts, seized).await?;
        }
        seized.of_jobs += sizes.counts.get(3).copied().unwrap_or(0);
        changed |= self.sessions(wire, judge, sizes.now, seized).await?;
        changed |= self.waiting(wire, judge, sizes.now).await?;
        changed |= self.recount(wire, judge).await?;
        changed |= self.agenda(wire, judge).await?;
        if changed {
            self.call_attention(wire).await?;
        }
        Ok(changed)
    }

    async fn sizes(&self, wire: &mut Wire) -> Result<Sizes, String> {
        type Told = (String, Vec<String>, Vec<u64>, Vec<Option<Vec<u8>>>, Vec<Vec<u8>>, u64);
        let told: Told = wire.ask(&script(SIZES, &self.keys, &FIELDS)).await?;
        let (now, types, counts, fields, times, named) = told;
        let now = UnixMicros(now.parse().unwrap_or(0));
        Ok(Sizes { now, types, counts, fields, times, named: named == 1 })
    }

    async fn types(&self, wire: &mut Wire, judge: &mut Judge, sizes: &Sizes) -> bool {
        let mut changed = false;
        for ((key, is), ought) in self.keys.iter().zip(&sizes.types).zip(TYPES).skip(2) {
            if is != "none" && is != ought {
                let aside = aside(self.tag, key, sizes.now);
                let fault = Fault::new(
                    format!("a key is a {is}, not a {ought}"),
                    key.clone(),
                    format!("rename {key} to {aside}"),
                    Mend::set_aside(key, is, aside),
                );
                changed |= judge.take(wire, &self.place, fault).await;
            }
        }
        changed
    }

    async fn fields(&self, wire: &mut Wire, judge: &mut Judge, sizes: &Sizes) -> bool {
        let (mut changed, meta) = (false, key::META.as_bytes());
        for (name, raw) in FIELDS.into_iter().zip(&sizes.fields) {
            let Some(raw) = raw else { continue };
            let Some(right) = field::mended(name, raw, sizes.now) else { continue };
            let mend = Mend::of(&self.keys).only_if(&[b"HGET", meta, name.as_bytes()], Some(raw));
            let shown = String::from_utf8_lossy(raw);
            let shown: String = shown.escape_debug().take(40).collect();
            let (change, mend) = match right {
                Right::Text(text) => (
                    format!("set {name} to {text}"),
                    mend.write(&[b"HSET", meta, name.as_bytes(), text.as_bytes()]),
                ),
                Right::Absent => (
                    format!("remove {name}, as if it was never set"),
                    mend.write(&[b"HDEL", meta, name.as_bytes()]),
                ),
            };
            let fault =
                Fault::new("fields of meta are broken".to_owned(), format!("{name} ({shown})"), change, mend);
            changed |= judge.take(wire, &self.place, fault).await;
        }
        changed | self.name(wire, judge, sizes).await
    }

    /// A queue that was born is named in `queues`, and one that is named has keys.
    async fn name(&self, wire: &mut Wire, judge: &mut Judge, sizes: &Sizes) -> bool {
        let (meta, queues, name) =
            (key::META.as_bytes(), key::QUEUES.as_bytes(), self.name.as_str().as_bytes());
        let jobs = sizes.counts.iter().skip(3).take(6).any(|count| *count > 0);
        let born = sizes.field("born").is_some();
        let mut changed = false;
        if jobs && !born {
            let now = sizes.now.0.to_string();
            let mend = Mend::of(&self.keys).only_if(&[b"HGET", meta, b"born"], None).write(&[
                b"HSET",
                meta,
                b"born",
                now.as_bytes(),
            ]);
            let (problem, change) = ("meta does not say since when the queue is", "set born to now");
            let fault = Fault::new(problem.to_owned(), "born".to_owned(), change.to_owned(), mend);
            changed |= judge.take(wire, &self.place, fault).await;
        }
        let nothing = sizes.types.iter().skip(2).all(|kind| kind == "none");
        let named = &[b"HEXISTS", queues, name][..];
        if (jobs || born) && !sizes.named {
            let mend = Mend::of(&self.keys).only_if(named, Some(b"0")).write(&[b"HSET", queues, name, b""]);
            let fault = Fault::new(
                "its name is not in the index, so lists, stats and metrics leave it out".to_owned(),
                self.keys[1].clone(),
                format!("add {} to {}", self.name, self.keys[1]),
                mend,
            );
            changed |= judge.take(wire, &self.place, fault).await;
        } else if nothing && sizes.named {
            let mend = Mend::of(&self.keys)
                .only_if(&[b"EXISTS", meta], Some(b"0"))
                .only_if(&[b"EXISTS", key::POOL.as_bytes()], Some(b"0"))
                .write(&[b"HDEL", queues, name]);
            let fault = Fault::new(
                "its name is in the index, but there is no such queue".to_owned(),
                self.keys[1].clone(),
                format!("remove {} from {}", self.name, self.keys[1]),
                mend,
            );
            changed |= judge.take(wire, &self.place, fault).await;
        }
        changed
    }

    async fn jobs(
        &self,
        wire: &mut Wire,
        judge: &mut Judge,
        source: usize,
        attempts: u16,
        seized: &mut Seized,
    ) -> Result<bool, String> {
        type Scores = Vec<Option<Vec<u8>>>;
        type Told =
            (String, String, Vec<Vec<u8>>, Scores, Scores, Scores, Scores, Scores, Scores, Scores, Vec<u64>);
        let (mut cursor, mut count, mut seen, mut changed) = ("0".to_owned(), FEWEST, 0, false);
        loop {
            let page = script(PAGE, &self.keys, &[&source.to_string(), &cursor, &count.to_string()]);
            let told: Told = wire.ask(&page).await?;
            let (now, next, ids, due, leased, dead, exp, big, states, records, lens) = told;
            let now = UnixMicros(now.parse().unwrap_or(0));
            let aside = aside(self.tag, &self.keys[3], now);
            let ward = Ward { keys: &self.keys, now: now.floor_ms(), attempts, aside };
            seen += ids.len() as u64;
            let bytes: u64 = lens.iter().sum();
            for (i, id) in ids.into_iter().enumerate() {
                let at = |scores: &Scores| scores.get(i).cloned().flatten();
                let len = lens.get(i).copied().unwrap_or(0);
                let record = match at(&records) {
                    Some(_) if source != SOURCES[0] => Some(Record::Unread),
                    read => read.map(|head| Record::Read { head, len }),
                };
                let scores = [at(&due), at(&leased), at(&dead), at(&exp), at(&big)];
                let seen = Seen { id, scores, state: at(&states), record };
                if let Some(fault) = ward.examine(&seen) {
                    changed |= judge.take(wire, &self.place, fault).await;
                }
            }
            if next == "0" || seen >= self.sample {
                if source == SOURCES[0] {
                    seized.jobs += seen;
                }
                return Ok(changed);
            }
            cursor = next;
            let mean = (bytes / count.max(1)).max(1);
            count = (PAGE_BYTES / mean).clamp(FEWEST, count.saturating_mul(8).min(MOST));
        }
    }

    async fn sessions(
        &self,
        wire: &mut Wire,
        judge: &mut Judge,
        now: UnixMicros,
        seized: &mut Seized,
    ) -> Result<bool, String> {
        let (mut cursor, mut seen, mut changed) = (0_u64, 0, false);
        loop {
            let mut scan = cmd("HSCAN");
            scan.arg(&self.keys[2]).arg(cursor).arg("COUNT").arg(100);
            let (next, fields): Pairs = match wire.ask(&scan).await {
                Err(why) if why.contains("WRONGTYPE") => return Ok(changed),
                page => page?,
            };
            seen += fields.len() as u64;
            for (field, text) in fields.into_iter().filter(|(field, _)| session::is_one(field)) {
                seized.sessions += 1;
                if let Some(until) = session::kept_until(&field, &text) {
                    seized.ended += u64::from(until <= now.floor_ms().0);
                } else {
                    changed |= judge.take(wire, &self.place, self.forgotten(&field, &text)).await;
                }
            }
            if next == 0 || seen >= self.sample {
                return Ok(changed);
            }
            cursor = next;
        }
    }

    fn forgotten(&self, field: &[u8], text: &[u8]) -> Fault {
        let (meta, shown) = (key::META.as_bytes(), String::from_utf8_lossy(field).into_owned());
        let mend =
            Mend::of(&self.keys).only_if(&[b"HGET", meta, field], Some(text)).write(&[b"HDEL", meta, field]);
        let change = format!("forget {shown}: a batch of it that is sent again counts as a new one");
        Fault::new("sessions are broken".to_owned(), shown, change, mend)
    }

    async fn waiting(&self, wire: &mut Wire, judge: &mut Judge, now: UnixMicros) -> Result<bool, String> {
        let (mut cursor, mut seen, mut changed) = (0_u64, 0, false);
        loop {
            let mut scan = cmd("ZSCAN");
            scan.arg(&self.keys[9]).arg(cursor).arg("COUNT").arg(100);
            let (next, engines): Pairs = match wire.ask(&scan).await {
                Err(why) if why.contains("WRONGTYPE") => return Ok(changed),
                page => page?,
            };
            seen += engines.len() as u64;
            for (engine, at) in engines {
                let is_engine =
                    std::str::from_utf8(&engine).is_ok_and(|text| text.parse::<Identity>().is_ok());
                if is_engine && time(&at).is_some_and(|at| at <= now.floor_ms().0 + AHEAD_MS) {
                    continue;
                }
                let (waiting, shown) = (key::WAITING.as_bytes(), String::from_utf8_lossy(&engine));
                let shown: String = shown.escape_debug().take(40).collect();
                let mend = Mend::of(&self.keys)
                    .only_if(&[b"ZSCORE", waiting, &engine], Some(&at))
                    .write(&[b"ZREM", waiting, &engine]);
                let change = format!("take {shown} off waiting");
                let fault =
                    Fault::new("what waits is no engine, or since no time".to_owned(), shown, change, mend);
                changed |= judge.take(wire, &self.place, fault).await;
            }
            if next == 0 || seen >= self.sample {
                return Ok(changed);
            }
            cursor = next;
        }
    }

    async fn recount(&self, wire: &mut Wire, judge: &mut Judge) -> Result<bool, String> {
        const PROBLEM: &str = "fields of meta do not count what there is";
        let repair = judge.mode == Mode::Repair;
        let mode = if repair { "mend" } else { "" };
        let wrong: Vec<(String, Option<Vec<u8>>, String)> =
            wire.ask(&script(RECOUNT, &self.keys, &[mode])).await?;
        for (name, was, ought) in &wrong {
            let was = was.as_deref().map_or("not set".into(), String::from_utf8_lossy);
            let was: String = was.escape_debug().take(40).collect();
            let (subject, change) = (format!("{name} ({was})"), format!("set {name} to {ought:?}"));
            if repair {
                judge.mended(&self.place, PROBLEM, subject, change);
            } else {
                judge.found(&self.place, PROBLEM, subject, change);
            }
        }
        Ok(repair && !wrong.is_empty())
    }

    /// The queue must be on the agenda no later than something happens there; earlier does no harm.
    async fn agenda(&self, wire: &mut Wire, judge: &mut Judge) -> Result<bool, String> {
        let sizes = self.sizes(wire).await?;
        let now = sizes.now.floor_ms().0;
        let Some(event) = sizes.next_event(now) else { return Ok(false) };
        let at = sizes.times.get(5).filter(|at| !at.is_empty());
        if at.and_then(|at| time(at)).is_some_and(|at| at <= event.max(now)) {
            return Ok(false);
        }
        let (agenda, member) = (key::AGENDA.as_bytes(), format!("q{}", self.name).into_bytes());
        let shown = at.map_or("not there".into(), |at| String::from_utf8_lossy(at));
        let fault = Fault::new(
            "it stands too late on the agenda, or not at all: what is next would not be noticed".to_owned(),
            format!("{} ({shown})", self.keys[0]),
            format!("have the queue tended now, and not first at {event}"),
            Mend::of(&self.keys).only_if(&[b"ZSCORE", agenda, &member], at.map(Vec::as_slice)).write(&[
                b"ZADD",
                agenda,
                now.to_string().as_bytes(),
                &member,
            ]),
        );
        Ok(judge.take(wire, &self.place, fault).await)
    }

    /// Whoever tends the shard looks here next: it wakes who waits, and knows when the next thing happens.
    async fn call_attention(&self, wire: &mut Wire) -> Result<(), String> {
        let now = wire.now().await?.floor_ms().0;
        let mut add = cmd("ZADD");
        wire.ask::<()>(add.arg(&self.keys[0]).arg("LT").arg(now).arg(format!("q{}", self.name))).await?;
        let _told: Result<(), String> =
            wire.ask(cmd("PUBLISH").arg(format!("{}head", self.tag)).arg(now)).await;
        Ok(())
    }

    fn was_left_behind(&self, sizes: &Sizes) -> bool {
        let drawn = self.name.as_str().strip_prefix("doctor-");
        let drawn =
            drawn.is_some_and(|text| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let born = sizes.field("born").and_then(whole);
        drawn && born.is_some_and(|born| born + LEFT_BEHIND_MICROS < sizes.now.0)
    }

    fn leftover(&self, sizes: &Sizes) -> Fault {
        let name = self.name.as_str();
        let born = sizes.field("born").unwrap_or_default();
        let mut mend = Mend::of(&self.keys)
            .only_if(&[b"HGET", key::META.as_bytes(), b"born"], Some(born.as_bytes()))
            .write(&[b"ZREM", key::AGENDA.as_bytes(), format!("q{name}").as_bytes()])
            .write(&[b"HDEL", key::QUEUES.as_bytes(), name.as_bytes()]);
        for number in 3..=self.keys.len() {
            mend = mend.write(&[b"UNLINK", number.to_string().as_bytes()]);
        }
        let problem = "it is what a doctor left behind that was killed".to_owned();
        Fault::new(problem, name.to_owned(), format!("destroy queue {name}"), mend)
    }
}

impl Sizes {
    fn field(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.raw(name)?).ok()
    }

    fn raw(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(FIELDS.iter().position(|field| *field == name)?)?.as_deref()
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        let at = |i: usize| self.times.get(i).and_then(|raw| time(raw));
        let [ahead, due, leased, exp, dead] = [at(0), at(1), at(2), at(3), at(4)];
        let retention = self.field("retention").and_then(whole);
        let purge = dead.zip(retention).map(|(died, kept)| died + kept);
        let forwards = self.field("forward").is_some() && self.field("paused") != Some("1");
        let forward = due.filter(|due| forwards && *due <= now).map(|_| now + FORWARD_RETRY_MS);
        [ahead, leased, exp, purge, forward].into_iter().flatten().min()
    }
}
