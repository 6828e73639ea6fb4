//! Plans out of seeds. Each seed draws which faults exist at all, and how often: a swarm (Groce et al., 2012).

use super::names;
use super::plan::{
    Act, Asks, Blow, Edge, Garble, JobPlan, NodePlan, Plan, Pump, QueuePlan, Rates, Spoil, Strikes, Verb, Why,
};
use crate::Random;

const SPAN_MS: u64 = 20_000;
/// In so many plans of a hundred there is such an upset.
const UPSETS: [u64; 7] = [10, 6, 4, 8, 2, 10, 8];
const GARBLES: usize = 6;

impl Plan {
    /// The plan of a seed.
    pub fn draw(seed: u64) -> Plan {
        let mut root = Random::new(seed);
        let mut stream = || Random::new(root.any());
        let (mut shape, mut rates, mut acts, mut blows) = (stream(), stream(), stream(), stream());
        let mut upsets = stream();
        let mut plan = Plan {
            seed,
            shards: *shape.pick(&[1, 1, 1, 2, 4]),
            span_ms: shape.number(5_000..=SPAN_MS),
            rates: Rates::draw(&mut rates),
            queues: queues(&mut shape),
            nodes: Vec::new(),
            acts: Vec::new(),
            blows: Vec::new(),
        };
        plan.nodes = nodes(&mut shape, plan.queues.len());
        plan.acts = draw_acts(&mut acts, &plan);
        if shape.percent(6) {
            plan.rates = Rates::default();
        } else {
            plan.blows = draw_blows(&mut blows, &plan);
            draw_upsets(&mut upsets, &mut plan);
        }
        plan
    }
}

impl Rates {
    fn draw(random: &mut Random) -> Rates {
        let mut some = |most: u64| if random.percent(40) { random.number(1..=most) } else { 0 };
        Rates {
            request_lost: some(20),
            reply_lost: some(20),
            silent: some(80),
            duplicated: some(20),
            duplicate_ms: 20_000,
            late: some(10),
            cut: some(10),
            refused: some(10),
            notice_lost: some(50),
            notice_twice: some(50),
            notice_late: some(30),
            fails: some(50),
            hangs: some(10),
            twice: some(20),
            meddles: some(20),
        }
    }
}

fn queues(random: &mut Random) -> Vec<QueuePlan> {
    let count = *random.pick(&[1, 2, 3, 3, 4]);
    let mut plans: Vec<QueuePlan> = (0..count)
        .map(|_| QueuePlan {
            attempts: random.percent(30).then(|| of(random, 1..=5)),
            retention_ms: random.percent(15).then(|| random.number(500..=20_000)),
            bury_expired: random.percent(20),
            max_jobs: random.percent(10).then(|| random.number(3..=60)),
            forward: None,
        })
        .collect();
    if let Some(last) = plans.last_mut().filter(|_| count == names::MOST) {
        let kind = *random.pick(&["list", "stream"]);
        *last = QueuePlan { forward: Some(names::destination(kind)), ..QueuePlan::default() };
    }
    plans
}

fn nodes(random: &mut Random, queues: usize) -> Vec<NodePlan> {
    let count = random.number(1..=5);
    let mut nodes: Vec<NodePlan> = (0..count).map(|number| node(random, queues, number == 0)).collect();
    if random.percent(10) {
        nodes.truncate(2);
        nodes.push(nodes[0].clone());
        by_cron_alone(random, queues, &mut nodes);
    }
    nodes
}

/// The last node, which cron starts, does all that the first would have done; that one only publishes.
fn by_cron_alone(random: &mut Random, queues: usize, nodes: &mut [NodePlan]) {
    for node in &mut *nodes {
        (node.pump, node.slots) = (Pump::Never, 0);
        node.subscriptions.clear();
        node.edge = None;
    }
    let Some((cron, [first, ..])) = nodes.split_last_mut() else { return };
    let deadline_ms = random.number(5_000..=10_000);
    let edge = Edge {
        every_ms: random.number(1_000..=3_000),
        trips: of(random, 60..=300),
        per_job: of(random, 0..=1),
        deadline_ms,
        killed: if random.percent(50) { random.number(1..=20) } else { 0 },
    };
    let subscriptions = (0..queues).map(|queue| (queue, 1, 100)).collect();
    let lease_ms = 3 * deadline_ms + 3_000;
    let flight_ms = first.flight_ms.min(500);
    *cron = NodePlan {
        pump: Pump::WhenDue,
        slots: 12,
        subscriptions,
        lease_ms,
        flight_ms,
        edge: Some(edge),
        ..first.clone()
    };
}

/// The first node works on all queues, so that everything can come to an end.
fn node(random: &mut Random, queues: usize, first: bool) -> NodePlan {
    let works = first || random.percent(50);
    let mut subscriptions = Vec::new();
    for queue in 0..queues {
        if first {
            subscriptions.push((queue, 1, 100));
        } else if works && random.percent(80) {
            subscriptions.push((queue, of(random, 1..=5), of(random, 1..=20)));
        }
    }
    let edge = (!first && random.percent(25)).then(|| Edge {
        every_ms: random.number(1_000..=10_000),
        trips: of(random, 1..=50),
        per_job: of(random, 0..=2),
        deadline_ms: random.number(500..=10_000),
        killed: if random.percent(50) { random.number(1..=50) } else { 0 },
    });
    let drift = random.number(0..=180);
    NodePlan {
        machine: u8::try_from(random.number(0..=1)).unwrap_or(0),
        start_ms: random.number(0..=2_000),
        offset_ms: random.number(100_000..=1_000_000),
        drift_ppm: i64::try_from(drift).unwrap_or(0) - 90,
        slots: if subscriptions.is_empty() { 0 } else { of(random, 1..=12) },
        subscriptions,
        pump: if first {
            Pump::Always
        } else if edge.is_some() {
            *random.pick(&[Pump::WhenDue, Pump::WhenDue, Pump::Always])
        } else {
            *random.pick(&[Pump::Never, Pump::WhileTaking, Pump::Always])
        },
        lease_ms: edge.as_ref().map_or(random.number(1_000..=6_000), |edge| 3 * edge.deadline_ms + 3_000),
        poll_ms: random.number(500..=10_000),
        pump_lease_ms: random.number(1_000..=10_000),
        flight_ms: random.number(50..=2_000),
        reserve_max: of(random, 1..=20),
        reserve_bytes: *random.pick(&[1 << 20, 20_000, 4_096]),
        edge,
    }
}

fn draw_acts(random: &mut Random, plan: &Plan) -> Vec<Act> {
    let mut acts = Vec::new();
    let (nodes, queues) = (plan.nodes.len(), plan.queues.len());
    for queue in 0..queues {
        if plan.queues[queue] != QueuePlan::default() {
            acts.push(Act { at_ms: random.number(0..=500), node: 0, what: Asks::Configure { queue } });
        }
    }
    let jobs = random.number(5..=60);
    for job in 0..u32::try_from(jobs).unwrap_or(0) {
        let (at_ms, queue) = (random.number(0..=plan.span_ms), index(random, queues));
        let published = draw_job(random, queue, job, at_ms);
        let due_ms = published.at_ms.unwrap_or(at_ms + published.delay_ms);
        acts.push(Act { at_ms, node: index(random, nodes), what: Asks::Publish(published) });
        if random.percent(20) {
            replacements(random, nodes, &mut acts, (at_ms, queue, job));
        }
        if random.percent(25) {
            let worst = random.percent(40);
            let at_ms = if worst { due_ms.min(plan.span_ms) } else { at_ms + random.number(0..=10_000) };
            let what = change(random, queue, job);
            acts.push(Act { at_ms, node: index(random, nodes), what });
        }
    }
    for _ in 0..random.number(0..=15) {
        let named = if random.percent(30) { (0..queues).collect() } else { vec![index(random, queues)] };
        let what = Asks::Take {
            queues: named,
            count: of(random, 1..=5),
            lease_ms: random.number(1_000..=5_000),
            wait_ms: if random.percent(30) { 0 } else { random.number(1..=10_000) },
            forget_ms: random.percent(20).then(|| random.number(0..=5_000)),
        };
        acts.push(Act { at_ms: random.number(0..=plan.span_ms), node: index(random, nodes), what });
    }
    for _ in 0..random.number(0..=6) {
        let queue = index(random, queues);
        let what = match random.number(0..=8) {
            0..=2 => Asks::Pause { queue, paused: random.percent(50) },
            3 => Asks::Requeue { queue },
            4 => Asks::Purge { queue },
            5 => Asks::Stats { queue },
            6 => Asks::Inspect { queue, job: of(random, 0..=jobs) },
            7 => Asks::List { queue, place: of(random, 0..=3) },
            _ => Asks::Configure { queue },
        };
        acts.push(Act { at_ms: random.number(0..=plan.span_ms), node: index(random, nodes), what });
    }
    acts.sort_by_key(|act| act.at_ms);
    acts
}

pub(super) fn change(random: &mut Random, queue: usize, job: u32) -> Asks {
    if random.percent(50) {
        Asks::Cancel { queue, job }
    } else {
        Asks::Reschedule { queue, job, after_ms: random.number(0..=6_000) }
    }
}

/// Publishes that take the place of a job, some of them at once so that they meet in a batch.
fn replacements(
    random: &mut Random,
    nodes: usize,
    acts: &mut Vec<Act>,
    (first_ms, queue, job): (u64, usize, u32),
) {
    let (mut at_ms, mut node) = (first_ms, index(random, nodes));
    for version in 2..=random.number(2..=4) {
        if random.percent(60) {
            at_ms += random.number(0..=6_000);
            node = index(random, nodes);
        }
        let published = JobPlan { version, replace: true, ..draw_job(random, queue, job, at_ms) };
        acts.push(Act { at_ms, node, what: Asks::Publish(published) });
    }
}

pub(super) fn draw_job(random: &mut Random, queue: usize, job: u32, at_ms: u64) -> JobPlan {
    let (delay_ms, due_ms) = match random.number(0..=9) {
        0..=3 => (0, None),
        4..=8 => (random.number(1..=8_000), None),
        _ => (0, Some(random.number(0..=at_ms + 10_000))),
    };
    let longest = due_ms.map_or(delay_ms, |due| due.saturating_sub(at_ms));
    JobPlan {
        queue,
        job,
        version: 1,
        delay_ms,
        at_ms: due_ms,
        ttl_ms: random.percent(8).then(|| longest + random.number(1..=6_000)),
        attempts: random.percent(70).then(|| of(random, 1..=4)),
        backoff_ms: random.pick(&[vec![], vec![700], vec![100, 2_000]]).clone(),
        lost_delay_ms: random.percent(10).then(|| random.number(0..=2_000)),
        timeout_ms: random.number(100..=30_000),
        bytes: if random.percent(8) { 5_000 } else { 2 },
        dense: random.percent(50),
        replace: false,
    }
}

fn draw_blows(random: &mut Random, plan: &Plan) -> Vec<Blow> {
    let mut blows = Vec::new();
    let nodes = plan.nodes.len();
    let kinds: Vec<u64> = (0..=11).filter(|_| random.percent(25)).collect();
    for kind in kinds {
        let most = if kind >= 9 { 2 } else { 4 };
        for _ in 0..random.number(1..=most) {
            let at_ms = random.number(0..=plan.span_ms);
            blows.push(Blow { at_ms, what: blow(random, kind, nodes) });
        }
    }
    blows.sort_by_key(|blow| blow.at_ms);
    blows
}

fn blow(random: &mut Random, kind: u64, nodes: usize) -> Strikes {
    match kind {
        0 => Strikes::Crash { node: index(random, nodes), down_ms: random.number(1..=5_000) },
        1 => Strikes::Pause { node: index(random, nodes), ms: random.number(500..=12_000) },
        2 => Strikes::Reset { node: index(random, nodes) },
        3 => Strikes::Deafen { node: index(random, nodes), ms: random.number(1..=3_000) },
        4 => Strikes::Jump { node: index(random, nodes), ms: jump(random, 8_000) },
        5 => Strikes::RedisJump { ms: jump(random, 8_000) },
        6 => Strikes::Flush,
        7 => Strikes::Stall { ms: random.number(10..=6_000) },
        8 => {
            let why = *random.pick(&[Why::Loading, Why::ReadOnly, Why::OutOfMemory, Why::Unavailable]);
            Strikes::Refuse { why, ms: random.number(10..=5_000) }
        }
        9 => Strikes::Suspend {
            machine: u8::try_from(random.number(0..=1)).unwrap_or(0),
            ms: random.number(1_000..=15_000),
            counted: random.percent(70),
        },
        10 => Strikes::Restart { down_ms: random.number(1..=3_000), loading_ms: random.number(0..=1_000) },
        _ => Strikes::Failover {
            down_ms: random.number(1..=3_000),
            lost: index(random, 40),
            skew_ms: if random.percent(50) { 0 } else { jump(random, 500) },
        },
    }
}

/// What changes Redis, or an engine, from under live processes.
fn draw_upsets(random: &mut Random, plan: &mut Plan) {
    let drawn = UPSETS.into_iter().enumerate().filter(|(_, often)| random.percent(*often));
    let kinds: Vec<usize> = drawn.map(|(kind, _)| kind).collect();
    if kinds.contains(&GARBLES) && random.percent(30) {
        (plan.rates, plan.blows) = (Rates::default(), garbles(random, plan));
        return;
    }
    for kind in kinds {
        let at_ms = random.number(0..=plan.span_ms);
        let (node, queue) = (index(random, plan.nodes.len()), index(random, plan.queues.len()));
        let down_ms = random.number(1..=8_000);
        let what = match kind {
            0 => Strikes::Demote { lost: if random.percent(50) { 0 } else { index(random, 40) } },
            1 => Strikes::FlushAll,
            2 => Strikes::Step { node, down_ms, ms: step(random) },
            3 => Strikes::Panic { node, down_ms: down_ms + 7_000 },
            4 => Strikes::Visit { queue, count: random.number(100..=3_000) },
            5 => {
                for _ in 0..random.number(1..=3) {
                    draw_spoil(random, plan);
                }
                continue;
            }
            _ => {
                plan.blows.extend(garbles(random, plan));
                continue;
            }
        };
        plan.blows.push(Blow { at_ms, what });
    }
    plan.blows.sort_by_key(|blow| blow.at_ms);
}

/// Somebody writes over a value.
fn draw_spoil(random: &mut Random, plan: &mut Plan) {
    let (at_ms, queue) = (random.number(0..=plan.span_ms), index(random, plan.queues.len()));
    let what = spoil(random);
    let of_leases = match &what {
        Spoil::Meta { field, .. } => field == "lo",
        what => matches!(what, Spoil::Score { .. }),
    };
    if !of_leases {
        return plan.blows.push(Blow { at_ms, what: Strikes::Spoil { queue, what } });
    }
    // Leases are to end by themselves, and no later grant is to bound them anew.
    let at_ms = plan.span_ms - random.number(0..=plan.span_ms / 8);
    let (node, down_ms) = (index(random, plan.nodes.len()), random.number(7_001..=15_000));
    plan.blows.push(Blow { at_ms, what: Strikes::Spoil { queue, what } });
    plan.blows.push(Blow { at_ms, what: Strikes::Panic { node, down_ms } });
}

fn spoil(random: &mut Random) -> Spoil {
    let text = random.pick(&Spoil::TEXTS).to_string();
    match random.number(0..=13) {
        0..=3 => Spoil::State { job: of(random, 0..=60), text },
        12.. => Spoil::Score { job: of(random, 0..=60) },
        // An empty lower bound says that no lease is held, and nobody can tell that it is not so.
        4..=6 => {
            let field = if random.percent(50) { "lo" } else { *random.pick(&Spoil::FIELDS) };
            let text = if field == "lo" && text.is_empty() { "x".to_owned() } else { text };
            Spoil::Meta { field: field.to_owned(), text }
        }
        7 | 8 => Spoil::Key { name: random.pick(&Spoil::KEYS).0.to_string() },
        _ if random.percent(50) => Spoil::Config,
        _ => Spoil::Name,
    }
}

/// An answer each, to commands of different kinds.
fn garbles(random: &mut Random, plan: &Plan) -> Vec<Blow> {
    let verbs = Verb::ALL.into_iter();
    let blows = verbs.filter_map(|verb| {
        let (at_ms, node) = (random.number(0..=plan.span_ms), index(random, plan.nodes.len()));
        let how = *random.pick(&[Garble::Undecodable, Garble::OtherKind]);
        random.percent(50).then_some(Blow { at_ms, what: Strikes::Garble { node, verb, how } })
    });
    let mut blows: Vec<Blow> = blows.collect();
    blows.sort_by_key(|blow| blow.at_ms);
    blows
}

/// Minutes, either way. Ahead fewer than ten: by then Redis has forgotten what it answered, and a resend is new to it.
fn step(random: &mut Random) -> i64 {
    let ms = i64::try_from(random.number(60_000..=500_000)).unwrap_or(0);
    if random.percent(50) { ms } else { -ms / 2 }
}

fn jump(random: &mut Random, most: u64) -> i64 {
    let ms = i64::try_from(random.number(1..=most)).unwrap_or(0);
    if random.percent(50) { ms } else { -ms }
}

fn index(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.number(0..=count.saturating_sub(1) as u64)).unwrap_or(0)
}

fn of<T: TryFrom<u64> + Default>(random: &mut Random, range: std::ops::RangeInclusive<u64>) -> T {
    T::try_from(random.number(range)).unwrap_or_default()
}
