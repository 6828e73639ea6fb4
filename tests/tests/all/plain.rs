//! Scripts decide the same with their plain parts and without: the same replies, messages and keys, whatever the batch.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use delayline_core::{
    Command, Compression, Due, Entry, Fence, JobId, QueueConfig, QueueName, Record, Reply, Session,
    Settlement, Shards, UnixMicros, UnixMs,
};
use delayline_embedded::Damage;
use delayline_lua::Script;
use delayline_tests::plain::{with_other_plain_part, with_plain_part, without_plain_part};
use delayline_tests::{Flavour, Options, Random, RedisServer, RedisStore, seeds};

use crate::rig::{IntoReason, NO_LIMIT, START, id, record};
use crate::scripts::shown;
use crate::world::ENGINES;

const SEQUENCES: u64 = 60;
const STEPS: usize = 120;
/// More than the small lists of Redis are used for.
const BATCH: u64 = 40;
const LEASE_MS: u64 = 30_000;
/// Commands that scripts do not use, by which the plain parts tell that they ran to their ends.
const MARKS: [(&str, &str); 4] =
    [("publish", "STRLEN"), ("reserve", "EXISTS"), ("settle", "TTL"), ("extend", "PTTL")];
const RAN: &str = "\n  plain = {";

/// What a sequence has seen so far.
struct Course {
    random: Random,
    now: UnixMicros,
    ids: u64,
    sequences: BTreeMap<char, u64>,
    /// Whether jobs are published that no plain part knows: reserve then finds them for a long time.
    is_odd: bool,
    /// Whether many jobs have a TTL.
    expires: bool,
    /// The last commands, each of which may come again.
    past: VecDeque<Command>,
    held: Vec<(JobId, Fence)>,
    /// Whether the queue has a gate, if it has one at times.
    gated: Option<bool>,
}

#[test]
fn plain_parts_decide_what_the_scripts_behind_them_decide() {
    let flavours = Flavour::all();
    let base = seeds::base();
    for (flavour, part) in flavours.iter().zip(0..) {
        let (_one, mut with) = store(flavour, |script| marked(script, "", ""));
        let (_other, mut without) = store(flavour, without_plain_part);
        with.connection().ask(&["CONFIG", "RESETSTAT"]);
        let share = SEQUENCES / flavours.len() as u64;
        for seed in (base + part * share)..(base + (part + 1) * share) {
            if let Err(difference) = sequence(seed, &mut with, &mut without) {
                panic!("{}, seed {seed}: {difference}", flavour.name);
            }
        }
        for (script, command) in MARKS {
            let ran = calls(&mut with, command);
            println!("{}: the plain part of {script} ran {ran} times", flavour.name);
            assert!(ran > share * 2, "{}: the plain part of {script} ran {ran} times", flavour.name);
            assert_eq!(calls(&mut without, command), 0);
        }
    }
}

#[test]
fn a_plain_part_that_decides_otherwise_is_found() {
    let flavour = Flavour::usual();
    let (_sound, mut without) = store(&flavour, without_plain_part);
    for (name, find, replace) in [
        ("publish", "if due_text <= now_text then", "if due_text < now_text then"),
        (
            "publish",
            "'published', format('%.0f', numbers[6] + n)",
            "'published', format('%.0f', numbers[6] + 1)",
        ),
        ("publish", "if waiting[i] or states[i] then", "if waiting[i] then"),
        ("publish", "last + 0 >= ARGV[3] + 0", "last + 0 > ARGV[3] + 0"),
        ("publish", "not soon_text or due_text < soon_text", "not soon_text"),
        ("reserve", "put('ZREM', KEYS[6], long_text)\n", "\n"),
        ("reserve", "put('HDEL', KEYS[7], long_text)\n", "\n"),
        ("reserve", "math.min(tries + 1, 9999)", "math.min(tries + 0, 9999)"),
        ("reserve", "if start_text ~= known or not record then", "if not known then"),
        ("reserve", "lo_text <= now_text", "lo_text < now_text"),
        ("reserve", "next_text <= now_text or false", "next_text < now_text or false"),
        ("reserve", "if lo_text == '' or end_text < lo_text then", "if lo_text == '' then"),
        ("publish", "numbers[13] + #exp / 2", "numbers[13] + 1"),
        ("publish", "or m[3] or m[17] then", "or m[17] then"),
        ("reserve", " or m[14] then", " then"),
        ("reserve", "purge_text < at_text", "purge_text > at_text"),
        (
            "reserve",
            "    else\n      -- The agenda knows of a lease that ends no later.\n      is_known = true\n    end\n",
            "    end\n    is_known = true\n",
        ),
        (
            "publish",
            "or n == 1 and pcall('ZADD', KEYS[5], 'NX', due[1], due[2]) ~= 1 then",
            "or n == 1 and not pcall('ZADD', KEYS[5], 'NX', due[1], due[2]) then",
        ),
        ("publish", "math.floor(kept / 60000) ~=", "math.floor(kept / 60000) ~= 1 +"),
        ("extend", "sub(texts[i], 1, 17) ~= 'L' .. fence_text", "sub(texts[i], 1, 1) ~= 'L'"),
        ("extend", "'XX', 'GT', ", "'XX', "),
        (
            "publish",
            "if end_text and (not soon_text or end_text < soon_text) then",
            "if end_text and not soon_text then",
        ),
        ("reserve", "flags_text = '01'\n", "flags_text = '00'\n"),
        ("reserve", "expiry_text < at_text", "expiry_text > at_text"),
        ("reserve", "or expiries[i] <= now_text", ""),
        ("settle", "'exp', -gone)", "'exp', -1)"),
        ("settle", "put('ZREM', KEYS[9], unpack(expiring))", "#expiring"),
        ("settle", "sub(texts[i], 1, 17) ~= start_text", "sub(texts[i], 1, 1) ~= 'L'"),
        ("settle", "seen[ids[i]] and 'g' or 'o', true", "'o', true"),
        ("settle", "put('HDEL', KEYS[4], unpack(ids))", ""),
        ("settle", "elseif flags_text ~= '00' then", "elseif flags_text == '0x' then"),
    ] {
        let (_wrong, mut wrong) = store(&flavour, |script| {
            if script.name == name { marked(script, find, replace) } else { script.written().to_owned() }
        });
        let found = (0..200).find(|&seed| sequence(seed, &mut wrong, &mut without).is_err());
        assert!(found.is_some(), "{name}: {find} may be {replace}");
    }
}

/// A store on a server of its own, which runs other sources for the scripts that have plain parts.
fn store(flavour: &Flavour, source: impl Fn(&'static Script) -> String) -> (RedisServer, RedisStore) {
    let server = RedisServer::start(Options { flavour: Some(flavour.clone()), ..Options::default() });
    let mut store = RedisStore::new(&server, Shards::default());
    store.run_instead(with_plain_part().map(|script| (script, source(script))));
    (server, store)
}

/// A script whose plain part tells when it has run to its end, and has one text in the place of another.
fn marked(script: &'static Script, find: &str, replace: &str) -> String {
    let (_, command) = MARKS.into_iter().find(|(name, _)| *name == script.name).expect("a mark");
    with_other_plain_part(script, |plain| {
        assert_eq!(plain.matches(RAN).count(), 1, "{}", script.name);
        assert!(find.is_empty() || plain.matches(find).count() == 1, "{}: {find}", script.name);
        let changed = if find.is_empty() { plain.to_owned() } else { plain.replacen(find, replace, 1) };
        changed.replacen(RAN, &format!("\n  redis.call('{command}', KEYS[1] .. 'none'){RAN}"), 1)
    })
}

fn calls(store: &mut RedisStore, command: &str) -> u64 {
    let info = store.connection().ask(&["INFO", "commandstats"]);
    let info = shown(&info);
    let line = format!("cmdstat_{}:calls=", command.to_lowercase());
    let found = info.lines().find_map(|text| text.strip_prefix(&line));
    found.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
}

/// Runs a sequence on both; tells where they differ.
fn sequence(seed: u64, with: &mut RedisStore, without: &mut RedisStore) -> Result<(), String> {
    let mut course = Course {
        random: Random::new(seed),
        now: UnixMicros(START),
        ids: 0,
        sequences: BTreeMap::new(),
        is_odd: seed.is_multiple_of(3),
        expires: seed.is_multiple_of(2),
        past: VecDeque::new(),
        held: Vec::new(),
        gated: (seed % 4 == 1).then_some(false),
    };
    for store in [&mut *with, &mut *without] {
        store.clear();
        store.subscribe(ENGINES[0]);
    }
    for step in 0..STEPS {
        if let Some(damage) = course.damage() {
            for store in [&mut *with, &mut *without] {
                store.damage(&queue(), &damage);
            }
        }
        let command = course.draw();
        let replies = [&mut *with, &mut *without].map(|store| store.execute(Some(course.now), &command));
        let heard = [&mut *with, &mut *without].map(RedisStore::heard);
        let keys = [&mut *with, &mut *without].map(RedisStore::dump);
        if replies[0] != replies[1] || heard[0] != heard[1] || keys[0] != keys[1] {
            let [one, other] = replies;
            return Err(format!("step {step}: {command:?}\n{one:?}\n{other:?}\n{heard:?}\n{keys:?}"));
        }
        let [reply, _] = replies;
        course.learn(&command, reply);
    }
    Ok(())
}

impl Course {
    fn draw(&mut self) -> Command {
        // The clock stands still at times, and goes past leases at others.
        let passed = *self.random.pick(&[0, 0, 1, 250, 999_000, 5_000_000, LEASE_MS * 1_000 + 1_000]);
        self.now = UnixMicros(self.now.0 + if self.random.number(0..=3) == 0 { passed } else { 137 });
        if self.random.number(0..=7) == 0 && !self.past.is_empty() {
            return self.random.pick(self.past.make_contiguous()).clone();
        }
        let command = match self.random.number(0..=19) {
            7..=12 => self.reserve(),
            13..=17 if !self.held.is_empty() => self.settle(),
            5..=6 if !self.held.is_empty() => self.extend(),
            18 => Command::Tend { queue: queue(), limit: 256, forward: None },
            19 => self.configure(),
            _ => self.publish(),
        };
        self.past.push_front(command.clone());
        self.past.truncate(32);
        command
    }

    /// The queue gets a gate, or loses it soon after, or is no longer in the index.
    fn damage(&mut self) -> Option<Damage> {
        if self.random.number(0..=30) == 0 {
            return Some(Damage::Unnamed);
        }
        let gated = self.gated?;
        if self.random.number(0..=if gated { 3 } else { 30 }) > 0 {
            return None;
        }
        self.gated = Some(!gated);
        Some(Damage::Gate { gate: (!gated).then(|| "flow".to_owned()) })
    }

    fn session(&mut self, verb: char) -> Session {
        let sequence = self.sequences.entry(verb).or_default();
        *sequence += 1;
        Session { engine: ENGINES[0], lane: 0, sequence: *sequence }
    }

    fn publish(&mut self) -> Command {
        let session = self.session('p');
        let most = *self.random.pick(&[2, BATCH]);
        let count = self.random.number(1..=most);
        let odd = self.is_odd && self.random.number(0..=1) == 0;
        let due = match self.random.number(0..=3) {
            0 => Due::After { ms: self.random.number(1..=20_000) },
            1 => Due::At(UnixMs(self.now.0 / 1_000 + self.random.number(0..=4_000) - 2_000)),
            _ => Due::After { ms: 0 },
        };
        let jobs = (0..count).map(|_| self.entry(due, odd)).collect();
        Command::Publish { queue: queue(), session, ceiling: NO_LIMIT, jobs }
    }

    fn entry(&mut self, due: Due, odd: bool) -> Entry {
        let known = self.ids > 0 && self.random.number(0..=60) == 0;
        let number = if known { self.random.number(1..=self.ids) } else { self.ids + 1 };
        self.ids = self.ids.max(number);
        let rare = |random: &mut Random| odd && random.number(0..=19) == 0;
        let bytes = if rare(&mut self.random) { 5_000 } else { 100 };
        let ttls = if self.expires { &[0, 40_000, 40_000, 6_000][..] } else { &[0] };
        let ttl_ms = *self.random.pick(ttls);
        let replace = rare(&mut self.random);
        let due =
            if self.random.number(0..=5) == 0 { Due::After { ms: self.random.number(0..=3) } } else { due };
        let record = if self.random.number(0..=30) == 0 { tried(3) } else { record(&vec![b'x'; bytes]) };
        Entry { id: id(&format!("job-{number:05}")), due, ttl_ms, replace, edit: None, record }
    }

    fn reserve(&mut self) -> Command {
        let session = self.session('r');
        let count = u16::try_from(self.random.number(0..=BATCH)).unwrap_or(1);
        let count = if self.random.number(0..=4) == 0 { count.min(3) } else { count };
        let lease_ms = *self.random.pick(&[LEASE_MS, LEASE_MS, 5_000, 15_000]);
        let wakeable = self.random.number(0..=1) == 0;
        Command::Reserve { queue: queue(), session, count, lease_ms, max_bytes: 1 << 20, wakeable }
    }

    fn settle(&mut self) -> Command {
        let count = usize::try_from(self.random.number(1..=BATCH)).unwrap_or(1).min(self.held.len());
        let mut leases: Vec<(JobId, Fence)> = self.held.drain(..count).collect();
        if self.random.number(0..=5) == 0
            && let Some(twice) = leases.first().cloned()
        {
            leases.push(twice);
        }
        if self.random.number(0..=9) == 0
            && let Some((_, fence)) = leases.last_mut()
        {
            fence.0 += 1;
        }
        let odd = self.random.number(0..=2) == 0;
        let leases = leases.into_iter().map(|(id, fence)| {
            let how = match self.random.number(0..=9) {
                0 if odd => Settlement::Nack { after_ms: 500, reason: "no".into_reason() },
                1 if odd => Settlement::Release { after_ms: 0 },
                2 if odd => Settlement::Snooze { after_ms: 20 },
                _ => Settlement::Ack,
            };
            (id, fence, how)
        });
        let leases = leases.collect();
        Command::Settle { queue: queue(), tidy: self.random.number(0..=7) == 0, leases }
    }

    fn extend(&mut self) -> Command {
        let count = usize::try_from(self.random.number(1..=BATCH)).unwrap_or(1).min(self.held.len());
        let mut leases: Vec<(JobId, Fence)> = self.held.iter().take(count).cloned().collect();
        if self.random.number(0..=9) == 0 {
            leases[0].1.0 += 1;
        }
        let lease_ms = *self.random.pick(&[LEASE_MS, 2_000, 60_000]);
        Command::Extend { queue: queue(), lease_ms, leases }
    }

    fn configure(&mut self) -> Command {
        if self.random.number(0..=2) == 0 {
            let paused = self.random.number(0..=1) == 0;
            return Command::Pause { queue: queue(), cfgver: None, paused };
        }
        let attempts = Some(*self.random.pick(&[1, 5, 999]));
        let max_jobs = *self.random.pick(&[None, None, Some(60)]);
        let retention_ms = *self.random.pick(&[None, Some(8_000)]);
        let config = QueueConfig { attempts, max_jobs, retention_ms, ..QueueConfig::default() };
        Command::Configure { queue: queue(), cfgver: None, config }
    }

    fn learn(&mut self, command: &Command, reply: Reply) {
        if let (Command::Reserve { .. }, Reply::Granted { jobs, fence, .. }) = (command, reply) {
            self.held.extend(jobs.into_iter().map(|job| (job.id, fence)));
        }
    }
}

fn queue() -> QueueName {
    "orders".parse().expect("a name")
}

/// A record that says how often its job may be delivered.
fn tried(attempts: u16) -> Bytes {
    let record = Record { attempts: Some(attempts), ..Record::default() };
    record.encode(Compression::Off).expect("a small record").to_bytes()
}
