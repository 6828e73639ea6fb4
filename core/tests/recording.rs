//! An engine's inputs, recorded and told to it again: the same decisions, whatever the world did.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use delayline_core::recording::{Damaged, Recorded, Replay, Ring, Sink, Unreadable};
use delayline_core::story::{Line, Story};
use delayline_core::{
    Answer, Ask, Command, Compression, Config, Credit, Due, Event, Head, Held, Identity, JobId, Lease,
    Millis, NewJob, Place, Pumping, QueueConfig, QueueName, Refusal, Reply, Request, Shards, Subscription,
    Take, Ticket, Token, UnixMicros, UnixMs, Verdict, armour,
};
use delayline_embedded::Store;
use proptest::prelude::*;

const ORIGIN: UnixMs = UnixMs(1_760_000_000_000);

/// What a test and a recorder share.
#[derive(Clone)]
struct Shared(Arc<Mutex<Ring>>);

impl Sink for Shared {
    fn put(&mut self, bytes: &[u8], is_fresh: bool) -> bool {
        let mut ring = self.0.lock().unwrap();
        let wants = ring.put(bytes, is_fresh);
        assert!(ring.len() <= ring.room());
        wants
    }
}

impl Shared {
    fn saved(&self) -> Vec<u8> {
        let ring = self.0.lock().unwrap();
        ring.segments().fold(Recorded::header(ORIGIN), |mut all, segment| {
            all.extend_from_slice(segment);
            all
        })
    }
}

/// An engine, a store, and all that can go wrong between them, out of one seed.
struct World {
    engine: Recorded,
    store: Store,
    story: Story,
    said: Vec<Line>,
    now: Millis,
    random: u64,
    token: u64,
    flying: Vec<(Millis, Ticket, Option<Vec<Reply>>)>,
    held: BTreeMap<Held, u32>,
    leases: Vec<Lease>,
    credit: Credit,
}

fn queue(number: u64) -> QueueName {
    ["red", "blue", "green"][usize::try_from(number % 3).unwrap()].parse().unwrap()
}

fn config(seed: u64) -> Config {
    let subscription = |queue| Subscription { queue, weight: 1, max: 3 };
    let subscriptions =
        if seed.is_multiple_of(3) { vec![] } else { vec![subscription(queue(0)), subscription(queue(1))] };
    Config {
        shards: Shards::new(2).unwrap(),
        subscriptions,
        slots: 4,
        pump: if seed.is_multiple_of(2) { Pumping::Always } else { Pumping::WhileTaking },
        lease_ms: 2_000,
        poll_ms: 1_000,
        flight_ms: 300,
        pending_jobs: 20,
        pending_bytes: 1 << 16,
        pending_requests: 8,
        compression: if seed.is_multiple_of(5) { Compression::Off } else { Compression::Over { bytes: 200 } },
        body_limit: 8_000,
        ..Config::default()
    }
}

impl World {
    fn new(seed: u64, sink: Option<Shared>) -> World {
        let config = config(seed);
        let mut store = Store::new(config.shards);
        let sink = sink.map(|sink| Box::new(sink) as Box<dyn Sink + Send>);
        let engine = Recorded::new(config, Identity(seed), Millis(5), sink).unwrap();
        store.subscribe(Identity(seed));
        let credit = if seed.is_multiple_of(7) { Credit { trips: 3, per_job: 1 } } else { Credit::UNLIMITED };
        World {
            engine,
            store,
            story: Story::since(ORIGIN),
            said: Vec::new(),
            now: Millis(5),
            random: seed | 1,
            token: 0,
            flying: Vec::new(),
            held: BTreeMap::new(),
            leases: Vec::new(),
            credit,
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    fn token(&mut self) -> Token {
        self.token += 1;
        Token(self.token)
    }

    fn id(&mut self) -> JobId {
        let number = self.draw(40);
        format!("job:{number}").parse().unwrap()
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.act();
            self.settle_down();
        }
    }

    fn act(&mut self) {
        match self.draw(20) {
            0..6 => self.publish(),
            6 => self.take(),
            7..9 => self.request(),
            9..13 => self.judge(),
            13 => {
                let wakeup = match self.draw(3) {
                    0 => delayline_core::Wakeup::Subscribed,
                    1 => delayline_core::Wakeup::Unsubscribed,
                    _ => delayline_core::Wakeup::Ready(queue(self.random)),
                };
                self.story.woken(&wakeup);
                self.engine.handle_wakeup(self.now, wakeup);
            }
            14 => {
                let token = Token(self.draw(self.token + 1));
                self.story.forgot(token);
                self.engine.forget(self.now, token);
            }
            15 => self.land(),
            _ => self.pass(),
        }
    }

    fn publish(&mut self) {
        let (len, kind) = (self.draw(9_500), self.draw(3));
        let body: Vec<u8> = match kind {
            0 => vec![b'a'; usize::try_from(len).unwrap()],
            1 => (0..len).map(|_| u8::try_from(self.draw(256)).unwrap()).collect(),
            _ => b"{}".to_vec(),
        };
        let (of, id) = (queue(self.draw(3)), self.id());
        let mut job = NewJob::new(of, id, Bytes::from(body));
        job.due = Due::After { ms: self.draw(3_000) };
        job.generated = self.draw(4) == 0;
        job.replace = self.draw(4) == 0;
        job.attempts = Some(3);
        job.timeout_ms = 1 + self.draw(4_000);
        job.published = UnixMs(7);
        if self.draw(3) == 0 {
            let long = usize::try_from(self.draw(4_000)).unwrap();
            job.headers = vec![("tenant".into(), "secret".repeat(1 + long / 6))];
        }
        let token = self.token();
        self.story.published(token, &job);
        if self.engine.publish(self.now, token, job).is_err() {
            let lines = self.story.backlogged(token);
            self.said.extend(lines);
        }
    }

    fn take(&mut self) {
        let (count, wait_ms) = (u16::try_from(1 + self.draw(3)).unwrap(), self.draw(1_500));
        let want = Take { queues: vec![queue(2), queue(0)], count, lease_ms: 1_500, wait_ms };
        let token = self.token();
        self.story.took(token, &want);
        if self.engine.take(self.now, token, want).is_err() {
            let lines = self.story.backlogged(token);
            self.said.extend(lines);
        }
    }

    fn request(&mut self) {
        let (of, id) = (queue(self.draw(3)), self.id());
        let lease = self.leases.pop();
        let ask = match (self.draw(9), lease) {
            (0 | 1, Some(lease)) => Ask::Settle { lease, verdict: Verdict::Ack },
            (2, Some(lease)) => Ask::Extend { lease, lease_ms: 3_000 },
            (3, _) => Ask::Cancel { queue: of, ids: vec![id] },
            (4, _) => Ask::Reschedule { queue: of, jobs: vec![(id, Due::After { ms: 200 })] },
            (5, _) => Ask::Inspect { queue: of, id },
            (6, _) => Ask::List { queue: of, place: Place::Dead, limit: 10, after: None },
            (7, _) => Ask::Requeue { queue: of, ids: None },
            (8, _) => Ask::Configure { queue: of, cfgver: None, config: QueueConfig::default() },
            _ => Ask::Stats { queue: of, hours: 1 },
        };
        let request = Request { ask, timeout_ms: 1 + self.draw(3_000) };
        let token = self.token();
        self.story.requested(token, &request);
        if self.engine.request(self.now, token, request).is_err() {
            let lines = self.story.backlogged(token);
            self.said.extend(lines);
        }
    }

    fn judge(&mut self) {
        let Some((&held, _)) = self.held.iter().next() else { return };
        self.held.remove(&held);
        let verdict = match self.draw(5) {
            0 => Verdict::Nack { after_ms: None, reason: "no such host".into() },
            1 => Verdict::Snooze { after_ms: 400 },
            2 => Verdict::Bury { reason: "bad".into() },
            3 => Verdict::Release,
            _ => Verdict::Ack,
        };
        self.story.settled(held, &verdict);
        self.engine.settle(self.now, held, verdict);
    }

    /// Time goes on: to the next thing that happens, or beyond it.
    fn pass(&mut self) {
        let next = self.engine.poll_timeout().map_or(Millis(self.now.0 + 50), |(at, _)| at);
        let late = self.draw(4) * self.draw(200);
        self.now = Millis(next.0.max(self.now.0) + late);
        self.engine.handle_timeout(self.now);
    }

    fn land(&mut self) {
        let Some(place) = self.draw(8).checked_rem(self.flying.len() as u64) else { return };
        let (_, ticket, replies) = self.flying.remove(usize::try_from(place).unwrap());
        match replies {
            Some(replies) => self.engine.handle_replies(self.now, ticket, replies),
            None => self.engine.handle_loss(self.now, ticket),
        }
    }

    /// Polls, as a driver does; most round trips are answered at once.
    fn settle_down(&mut self) {
        loop {
            let mut moved = false;
            while let Some(transmit) = self.engine.poll_transmit(self.credit) {
                moved = true;
                let (ticket, commands) = (transmit.ticket, transmit.commands.to_vec());
                self.said.extend(commands.iter().flat_map(|command| self.story.sent(command)));
                self.carry(ticket, &commands);
            }
            while let Some(event) = self.engine.poll_event() {
                moved = true;
                self.said.extend(self.story.told(&event));
                match event {
                    Event::Run(job) => drop(self.held.insert(job.held.unwrap(), 0)),
                    Event::Abandon(held) => drop(self.held.remove(&held)),
                    Event::Answered { answer: Ok(Answer::Taken(jobs)), .. } => {
                        self.leases.extend(jobs.into_iter().map(|job| job.lease));
                    }
                    _ => {}
                }
            }
            if !moved {
                break;
            }
            let due = self.flying.iter().position(|(at, ..)| *at <= self.now);
            if let Some((_, ticket, replies)) = due.map(|place| self.flying.remove(place)) {
                match replies {
                    Some(replies) => self.engine.handle_replies(self.now, ticket, replies),
                    None => self.engine.handle_loss(self.now, ticket),
                }
            }
        }
        while let Some(notice) = self.store.poll_wakeup() {
            if self.draw(5) > 0 {
                self.engine.handle_wakeup(self.now, notice.wakeup);
            }
        }
    }

    fn carry(&mut self, ticket: Ticket, commands: &[Command]) {
        let time = UnixMicros(1_760_000_000_000_500 + self.now.0 * 1_000);
        let delay = if self.draw(6) == 0 { self.draw(900) } else { 0 };
        let at = Millis(self.now.0 + delay);
        let (fate, replies) = match self.draw(16) {
            0 => (None, false),
            1 => (Some(vec![Reply::Refused(Refusal::NoScript); commands.len()]), false),
            2 => (Some(vec![Reply::Refused(Refusal::NotConnected); commands.len()]), false),
            3 => (Some(vec![Reply::Broken("ERR what".into())]), false),
            4 => (None, true),
            _ => (Some(Vec::new()), true),
        };
        let executed: Vec<Reply> = if replies {
            commands.iter().map(|command| self.store.execute(time, command)).collect()
        } else {
            Vec::new()
        };
        let executed = executed.into_iter().map(|reply| self.spoilt(reply)).collect();
        let answer = fate.map(|fate| if replies { executed } else { fate });
        self.flying.push((at, ticket, answer));
    }

    /// Records come armoured, cut, of a newer version, or as they are.
    fn spoilt(&mut self, mut reply: Reply) -> Reply {
        if let Reply::Granted { jobs, .. } = &mut reply {
            for job in jobs {
                let head = Head::decode(&job.record).unwrap().len();
                job.record = match self.draw(12) {
                    0..3 => armour(&job.record[..head], &job.record[head..]).unwrap().into(),
                    3 => job.record.slice(..head.min(job.record.len() - 1)),
                    4 => Bytes::from_static(b"2xxxxxxxxxxxxxxxx"),
                    5 => Bytes::from_static(b"garbage that is of somebody else"),
                    _ => continue,
                };
            }
        }
        reply
    }
}

fn replayed(saved: &[u8]) -> Vec<Line> {
    let mut replay = Replay::open(saved).unwrap();
    let mut lines = Vec::new();
    for step in iter::from_fn(|| replay.next()) {
        let step = step.unwrap();
        assert_eq!(step.divergence, None, "{step:?}");
        lines.extend(step.decided);
    }
    lines
}

/// A driver may poll an event later than it came about.
fn sorted(mut lines: Vec<Line>) -> Vec<Line> {
    lines.sort_by(|a, b| (&a.words, &a.about).cmp(&(&b.words, &b.about)));
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_replay_decides_as_the_engine_did(seed in any::<u64>()) {
        let ring = Shared(Arc::new(Mutex::new(Ring::new(64 << 20))));
        let mut world = World::new(seed, Some(ring.clone()));
        world.run(400);
        prop_assert!(world.said.len() > 100, "{}", world.said.len());
        prop_assert_eq!(sorted(world.said), sorted(replayed(&ring.saved())));
    }

    #[test]
    fn recording_changes_no_decision(seed in any::<u64>()) {
        let ring = Shared(Arc::new(Mutex::new(Ring::new(1 << 16))));
        let (mut with, mut without) = (World::new(seed, Some(ring)), World::new(seed, None));
        with.run(200);
        without.run(200);
        prop_assert_eq!(with.said, without.said);
    }

    #[test]
    fn any_bytes_are_read_to_an_end(bytes: Vec<u8>, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let _ = Replay::open(&bytes);
        let ring = Shared(Arc::new(Mutex::new(Ring::new(1 << 20))));
        World::new(5, Some(ring.clone())).run(30);
        let mut saved = ring.saved();
        for (place, to) in flips {
            let place = place.index(saved.len());
            saved[place] = to;
        }
        let mut all = Recorded::header(ORIGIN);
        all.extend_from_slice(&bytes);
        for bytes in [saved, all] {
            let Ok(mut replay) = Replay::open(&bytes) else { continue };
            // What it is told may be what no engine is ever told: that may panic, reading may not.
            while let Some(Ok(_)) = replay.hear() {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_ring_that_has_wrapped_is_replayed_from_its_first_state(seed in any::<u64>()) {
        let ring = Shared(Arc::new(Mutex::new(Ring::new(64 << 10))));
        let mut world = World::new(seed, Some(ring.clone()));
        world.run(6_000);
        let saved = ring.saved();
        prop_assert!(saved.len() > 16 << 10, "{}", saved.len());
        let lines = replayed(&saved);
        prop_assert!(lines.len() < world.said.len() / 2, "{} of {}", lines.len(), world.said.len());
        let mut said: BTreeMap<String, u32> = BTreeMap::new();
        world.said.into_iter().for_each(|line| *said.entry(line.words).or_default() += 1);
        // Whose answer it is that was waited for when the state was kept, the story does not know.
        for line in lines.into_iter().filter(|line| !line.words.starts_with("request ")) {
            let left = said.get_mut(&line.words).filter(|left| **left > 0);
            prop_assert!(left.map(|left| *left -= 1).is_some(), "{}", line);
        }
    }
}

#[test]
fn a_recording_that_is_cut_off_is_replayed_up_to_there() {
    let ring = Shared(Arc::new(Mutex::new(Ring::new(1 << 20))));
    World::new(4, Some(ring.clone())).run(50);
    let saved = ring.saved();
    let all = replayed(&saved).len();
    for cut in [1, 9, 100, saved.len() / 2] {
        let mut replay = Replay::open(&saved[..saved.len() - cut]).unwrap();
        let steps: Vec<_> = iter::from_fn(|| replay.next()).collect();
        let lines: usize = steps.iter().flatten().map(|step| step.decided.len()).sum();
        assert!(lines <= all && steps.iter().flatten().all(|step| step.divergence.is_none()));
        if let Some(Err(error)) = steps.last() {
            assert!(error.to_string().contains("cut off"), "{error}");
        }
    }
}

#[test]
fn what_is_no_recording_says_so() {
    assert_eq!(Replay::open(b"hello").err(), Some(Unreadable::NotOne));
    let mut newer = Recorded::header(ORIGIN);
    newer[10] = 9;
    assert_eq!(Replay::open(&newer).err(), Some(Unreadable::Format { found: 9 }));
    assert!(Replay::open(&newer).err().unwrap().to_string().ends_with("replay it with a newer one"));
    let mut older = Recorded::header(ORIGIN);
    older[10] = 1;
    let error = Replay::open(&older).err().unwrap().to_string();
    assert!(
        error.contains("has format 1") && error.ends_with("replay it with the version that made it"),
        "{error}"
    );
    assert_eq!(Replay::open(&Recorded::header(ORIGIN)[..15]).err(), Some(Unreadable::NoHeader));
    assert_eq!(Replay::open(&Recorded::header(ORIGIN)).unwrap().header().origin, ORIGIN);
}

#[test]
fn neither_bodies_nor_values_of_headers_are_kept() {
    let ring = Shared(Arc::new(Mutex::new(Ring::new(1 << 20))));
    let mut world = World::new(2, Some(ring.clone()));
    for number in 0..20 {
        let id = format!("id:{number}").parse().unwrap();
        let mut job = NewJob::new(queue(0), id, Bytes::from_static(b"the body of a job"));
        job.headers = vec![("tenant".into(), "hidden-value".into())];
        let token = world.token();
        let _ = world.engine.publish(world.now, token, job);
        world.run(3);
    }
    let saved = ring.saved();
    let has = |text: &str| saved.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("tenant") && has("id:1") && has("red"));
    assert!(!has("the body") && !has("hidden") && !has("secret"));
}

#[test]
fn a_divergence_is_told() {
    let ring = Shared(Arc::new(Mutex::new(Ring::new(1 << 20))));
    World::new(4, Some(ring.clone())).run(50);
    let saved = ring.saved();
    let mut found = 0;
    for place in (saved.len() / 2)..(saved.len() / 2 + 200) {
        let mut changed = saved.clone();
        changed[place] ^= 1;
        let result = std::panic::catch_unwind(|| {
            let mut replay = Replay::open(&changed).unwrap();
            iter::from_fn(|| replay.next())
                .any(|step| step.is_err() || step.is_ok_and(|step| step.divergence.is_some()))
        });
        found += usize::from(result.unwrap_or(true));
    }
    assert!(found > 150, "{found} of 200 changes were seen");
}

#[test]
fn nothing_follows_on_what_is_senseless() {
    let ring = Shared(Arc::new(Mutex::new(Ring::new(1 << 20))));
    World::new(4, Some(ring.clone())).run(50);
    let mut saved = Recorded::header(ORIGIN);
    let mut rest = ring.saved().split_off(saved.len());
    let start = usize::from(rest[0]) + 1;
    saved.extend(rest.split_off(start));
    let steps: Vec<_> = Replay::open(&saved).unwrap().collect();
    assert!(matches!(&*steps, [Err(Damaged::Senseless { .. })]), "{steps:?}");
}
