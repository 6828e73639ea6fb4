use std::fmt;

use bytes::Bytes;
use delayline_core::{
    Ask, Backoff, Due, JobId, NewJob, Pumping, QueueName, Reason, Request, Subscription, Take, UnixMs,
    Verdict,
};

use crate::Random;

/// One publish of an id, which may be published again once it is gone: each has a publishing time of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instance {
    pub(super) queue: QueueName,
    pub(super) id: JobId,
    pub(super) published: UnixMs,
}

/// What a caller waits for.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Publish(Instance),
    Cancel(QueueName, JobId),
    Reschedule(QueueName, JobId),
    Take,
    Settle,
    Other,
}

/// What somebody does at some time.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Publish(Box<NewJob>),
    Take(Take),
    Ask(Ask),
}

pub(super) const HOLD_MS: u64 = 20_000;

/// Everything that will be asked of the nodes: the time in ms, which node, what.
pub(super) fn draw(random: &mut Random, nodes: u64, span_ms: u64) -> Vec<(u64, usize, Act)> {
    let queues = queues();
    let mut acts = Vec::new();
    let jobs = random.number(20..=120);
    for n in 0..jobs {
        let at_ms = random.number(0..=span_ms);
        let node = node(random, nodes);
        let queue = random.pick(&queues).clone();
        let id: JobId = format!("j{n}").parse().expect("a job id");
        acts.push((at_ms, node, Act::Publish(Box::new(job(random, queue.clone(), id.clone())))));
        if random.percent(20) {
            acts.extend(replacements(random, nodes, at_ms, &queue, &id));
        }
        if random.percent(20) {
            let after = at_ms + random.number(0..=10_000);
            let ask = if random.percent(50) {
                Ask::Cancel { queue, ids: vec![id] }
            } else {
                reschedule(random, queue, id)
            };
            acts.push((after, self::node(random, nodes), Act::Ask(ask)));
        }
    }
    for _ in 0..random.number(0..=30) {
        let mut named = vec![random.pick(&queues).clone()];
        if random.percent(30) {
            named = queues.to_vec();
        }
        let take = Take {
            queues: named,
            count: u16::try_from(random.number(1..=5)).unwrap_or(1),
            lease_ms: random.number(1_000..=5_000),
            wait_ms: if random.percent(30) { 0 } else { random.number(1..=10_000) },
        };
        acts.push((random.number(0..=span_ms), node(random, nodes), Act::Take(take)));
    }
    for _ in 0..random.number(0..=4) {
        let queue = random.pick(&queues).clone();
        let ask = match random.number(0..=3) {
            0 | 1 => Ask::Pause { queue, paused: random.percent(50) },
            2 => Ask::Requeue { queue, ids: None },
            _ => Ask::Stats { queue, hours: 2 },
        };
        acts.push((random.number(0..=span_ms), node(random, nodes), Act::Ask(ask)));
    }
    acts
}

/// Publishes that take the place of a job, some of them at once so that they meet in a batch.
fn replacements(
    random: &mut Random,
    nodes: u64,
    at_ms: u64,
    queue: &QueueName,
    id: &JobId,
) -> Vec<(u64, usize, Act)> {
    let (mut at_ms, mut node) = (at_ms, node(random, nodes));
    let replacements = (0..random.number(1..=3)).map(|n| {
        if random.percent(60) {
            at_ms += random.number(0..=10_000);
            node = self::node(random, nodes);
        }
        let mut job = job(random, queue.clone(), id.clone());
        job.published = UnixMs(2 + n);
        job.replace = true;
        (at_ms, node, Act::Publish(Box::new(job)))
    });
    replacements.collect()
}

/// Now that an answer tells that the job was cancelled or moved, the same id again.
pub(super) fn again(random: &mut Random, asked: Asked) -> Option<Act> {
    match asked {
        Asked::Cancel(queue, id) => {
            let mut job = job(random, queue, id);
            job.published = UnixMs(1);
            Some(Act::Publish(Box::new(job)))
        }
        Asked::Reschedule(queue, id) => Some(Act::Ask(reschedule(random, queue, id))),
        _ => None,
    }
}

fn reschedule(random: &mut Random, queue: QueueName, id: JobId) -> Ask {
    let due = Due::After { ms: random.number(0..=10_000) };
    Ask::Reschedule { queue, jobs: vec![(id, due)] }
}

/// Resumes what the workload may have paused.
pub(super) fn resume_all() -> Vec<Act> {
    queues().into_iter().map(|queue| Act::Ask(Ask::Pause { queue, paused: false })).collect()
}

pub(super) fn queues() -> [QueueName; 3] {
    ["red", "green", "blue"].map(|name| name.parse().expect("a queue name"))
}

pub(super) fn subscriptions(random: &mut Random) -> Vec<Subscription> {
    let queues = queues().into_iter().filter(|_| random.percent(80)).collect::<Vec<_>>();
    let number = |random: &mut Random, most| u16::try_from(random.number(1..=most)).unwrap_or(1);
    queues
        .into_iter()
        .map(|queue| Subscription { queue, weight: number(random, 5), max: number(random, 20) })
        .collect()
}

pub(super) fn pumping(random: &mut Random) -> Pumping {
    *random.pick(&[Pumping::Never, Pumping::WhileTaking, Pumping::Always])
}

pub(super) fn request(ask: Ask) -> Request {
    Request { ask, timeout_ms: 10_000 }
}

fn node(random: &mut Random, nodes: u64) -> usize {
    usize::try_from(random.number(0..=nodes - 1)).unwrap_or(0)
}

fn job(random: &mut Random, queue: QueueName, id: JobId) -> NewJob {
    let mut job = NewJob::new(queue, id, Bytes::from_static(b"{}"));
    job.due = match random.number(0..=9) {
        0..=3 => Due::After { ms: 0 },
        4..=8 => Due::After { ms: random.number(1..=15_000) },
        _ => Due::At(UnixMs(super::world::EPOCH_MS + random.number(0..=60_000))),
    };
    let delay_ms = if let Due::After { ms } = job.due { ms } else { 60_000 };
    job.ttl_ms = random.percent(5).then(|| delay_ms + random.number(0..=10_000));
    job.attempts = random.percent(70).then(|| u16::try_from(random.number(1..=4)).unwrap_or(1));
    job.backoff = Some(
        random.pick(&[Backoff::None, Backoff::Fixed { ms: 700 }, Backoff::Ladder(vec![100, 3_000])]).clone(),
    );
    job.lost_delay_ms = random.percent(10).then(|| random.number(0..=3_000));
    job.timeout_ms = random.number(100..=30_000);
    if random.percent(5) {
        job.body = Bytes::from(vec![b'x'; 5_000]);
    }
    job
}

impl Instance {
    pub(super) fn of(job: &NewJob) -> Instance {
        Instance { queue: job.queue.clone(), id: job.id.clone(), published: job.published }
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, publish {},", self.id, self.queue, self.published)
    }
}

impl Asked {
    pub(super) fn by(ask: &Ask) -> Asked {
        match ask {
            Ask::Cancel { queue, ids } if ids.len() == 1 => Asked::Cancel(queue.clone(), ids[0].clone()),
            Ask::Reschedule { queue, jobs } if jobs.len() == 1 => {
                Asked::Reschedule(queue.clone(), jobs[0].0.clone())
            }
            _ => Asked::Other,
        }
    }
}

/// How a handler ends, and after how long.
pub(super) fn handled(random: &mut Random, calm: bool) -> (u64, Verdict) {
    let reason = Reason::new("simulated");
    let verdict = match random.number(0..=19) {
        13 | 14 => Verdict::Nack { after_ms: None, reason },
        15 => Verdict::Nack { after_ms: Some(random.number(0..=2_000)), reason },
        16 => Verdict::Snooze { after_ms: random.number(1..=2_000) },
        17 if !calm => Verdict::Release,
        18 => Verdict::Bury { reason },
        _ => Verdict::Ack,
    };
    let long = random.percent(5) && !calm;
    (if long { random.number(1_000..=HOLD_MS) } else { random.number(0..=300) }, verdict)
}
