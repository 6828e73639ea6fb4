use bytes::Bytes;
use delayline_core::wire::{All, Value, decode};
use delayline_core::{
    Ask, Command, Config, Counters, Due, Fence, JobId, Kind, Lease, NewJob, Pumping, QueueConfig, QueueName,
    Reply, Shard, Shards, Stats, Take, UnixMicros, Verdict, Wakeup,
};
use delayline_tokio::plain;
use delayline_tokio::redis::parse_redis_value;
use delayline_wasm::rest::{Answer, Landed, land};

use super::input::Input;
use super::rig::Rig;
use super::value::{KINDS, any, value};

const TIMEOUT_MS: u64 = 30_000;
const DEEPEST: u8 = 8;
const STATUSES: [u16; 8] = [200, 204, 302, 400, 401, 413, 429, 502];

/// A reply as RESP carries it, as a REST endpoint answers it, or put together here, is read without failing whatever was asked; and an
/// engine that asked for it lives on, and drains.
///
/// # Panics
/// If not.
pub fn reply(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.byte() {
        b'j' => rest(200, input.rest()),
        b's' => {
            let status = input.pick(&STATUSES);
            rest(status, input.rest());
        }
        b'b' => {
            let kind = input.pick(&KINDS);
            hear(kind, value(kind, &mut input));
        }
        b'a' => {
            let value = any(&mut input, DEEPEST);
            hear_all(&value);
        }
        _ => {
            if let Ok(value) = parse_redis_value(input.rest()) {
                let value = plain(value);
                hear_all(&value);
            }
        }
    }
}

/// An answer of a REST endpoint: a list of results, or what else there is at such an address.
fn rest(status: u16, body: &[u8]) {
    let body = match body.first() {
        Some(b'{') => [b"[", body, b"]"].concat(),
        _ => body.to_vec(),
    };
    for kind in KINDS {
        match land(All, &[kind; 4], Ok(Answer { status, body: body.clone() })) {
            Landed::Replies(replies) => replies.into_iter().for_each(|reply| heard(kind, reply)),
            Landed::Lost { why } => assert!(!why.is_empty(), "it is said what is lost"),
        }
    }
}

fn hear_all(value: &Value) {
    for kind in KINDS {
        hear(kind, value.clone());
    }
}

fn hear(kind: Kind, value: Value) {
    heard(kind, decode(kind, value));
}

fn heard(kind: Kind, reply: Reply) {
    match reply {
        Reply::Broken(why) => assert!(!why.is_empty() || kind != Kind::Server, "it is said what is broken"),
        Reply::Refused(why) => assert!(!why.to_string().is_empty()),
        reply => live_with(kind, reply),
    }
}

fn live_with(kind: Kind, reply: Reply) {
    let pump = if matches!(kind, Kind::Peek | Kind::Tend) { Pumping::Always } else { Pumping::Never };
    let mut rig = Rig::new(Config { pump, ..Config::default() });
    asks_for(kind, &mut rig);
    rig.poll_dry();
    for _ in 0..3 {
        let Some(place) =
            rig.air.iter().position(|(_, commands)| commands.iter().any(|it| it.kind() == kind))
        else {
            let (ticket, commands) = rig.air.remove(0);
            let replies = commands.iter().map(prelude).collect::<Vec<_>>();
            rig.replies(ticket, &commands, replies);
            rig.poll_dry();
            continue;
        };
        let (ticket, commands) = rig.air.remove(place);
        rig.now = rig.now + 5;
        rig.replies(ticket, &commands, vec![reply]);
        rig.poll_dry();
        return rig.finish();
    }
    panic!("no {kind:?} was sent");
}

fn queue() -> QueueName {
    "orders".parse().expect("a name")
}

fn id() -> JobId {
    "17".parse().expect("an id")
}

fn asks_for(kind: Kind, rig: &mut Rig) {
    let lease = || Lease { queue: queue(), id: id(), fence: Fence(7), retry_ms: 1_000 };
    let ask = match kind {
        Kind::Publish => return rig.publish(NewJob::new(queue(), id(), Bytes::from_static(b"{}"))),
        Kind::Reserve => {
            let take = Take { queues: vec![queue()], count: 3, lease_ms: 30_000, wait_ms: 1_000 };
            return rig.take(take);
        }
        Kind::Peek => return,
        Kind::Tend => return rig.engine.handle_wakeup(rig.now, Wakeup::Ready(queue())),
        Kind::Open => Ask::Open { shards: Shards::default() },
        Kind::Server => Ask::Server,
        Kind::Settle => Ask::Settle { lease: lease(), verdict: Verdict::Ack },
        Kind::Extend => Ask::Extend { lease: lease(), lease_ms: 1_000 },
        Kind::Cancel => Ask::Cancel { queue: queue(), ids: vec![id()] },
        Kind::Reschedule => Ask::Reschedule { queue: queue(), jobs: vec![(id(), Due::After { ms: 1 })] },
        Kind::Requeue => Ask::Requeue { queue: queue(), ids: None },
        Kind::Purge => Ask::Purge { queue: queue(), ids: Some(vec![id()]) },
        Kind::Configure => Ask::Configure { queue: queue(), cfgver: Some(1), config: QueueConfig::default() },
        Kind::Pause => Ask::Pause { queue: queue(), paused: true },
        Kind::Destroy => Ask::Destroy { queue: queue() },
        Kind::Inspect => Ask::Inspect { queue: queue(), id: id() },
        Kind::List(place) => Ask::List { queue: queue(), place, limit: 2, after: None },
        Kind::Stats => Ask::Stats { queue: queue(), hours: 2 },
        Kind::Queues => Ask::Queues { shard: Shard(0), cursor: 0, count: 10 },
    };
    rig.request(ask, TIMEOUT_MS);
}

/// What must be answered before the command of interest is sent.
fn prelude(command: &Command) -> Reply {
    let time = UnixMicros(1_763_700_000_000_000);
    match command {
        Command::Stats { .. } => {
            let counters = Counters { published: 1, ..Counters::default() };
            Reply::Counted { time, stats: Stats { born: Some(time), counters, ..Stats::default() } }
        }
        _ => Reply::Peeked { time, holder: None, agenda: Vec::new(), firsts: Vec::new() },
    }
}
