use std::fmt::{self, Write as _};
use std::str::FromStr;

use delayline_core::Kind;
use delayline_embedded::Key;
use serde::{Deserialize, Serialize};

/// A run as data: what callers ask, what fails, and when. Equal plans give equal runs.
///
/// Its text is a line of JSON for each part, so that a shrunk plan can be read, edited and kept under `tests/plans/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Whose streams of random numbers decide what the plan leaves open.
    pub seed: u64,
    /// How many shards the deployment has.
    pub shards: u16,
    /// When faults end.
    pub span_ms: u64,
    /// How often the network and handlers fail.
    pub rates: Rates,
    /// The config of each queue.
    #[serde(skip)]
    pub queues: Vec<QueuePlan>,
    /// The processes.
    #[serde(skip)]
    pub nodes: Vec<NodePlan>,
    /// What callers do.
    #[serde(skip)]
    pub acts: Vec<Act>,
    /// What happens to processes, machines and Redis.
    #[serde(skip)]
    pub blows: Vec<Blow>,
}

/// Faults in percent of their occasions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Rates {
    /// Requests that never arrive.
    pub request_lost: u64,
    /// Replies that never arrive, though the request was carried out.
    pub reply_lost: u64,
    /// Losses that the driver does not notice: only the flight timer does.
    pub silent: u64,
    /// Requests that arrive a second time, later.
    pub duplicated: u64,
    /// The longest that such a duplicate is late.
    pub duplicate_ms: u64,
    /// Requests and replies that take longer than the flight timer.
    pub late: u64,
    /// Round trips cut after a part of their commands.
    pub cut: u64,
    /// Round trips refused for want of a connection.
    pub refused: u64,
    /// Notifications lost.
    pub notice_lost: u64,
    /// Notifications that arrive twice.
    pub notice_twice: u64,
    /// Notifications that arrive seconds later.
    pub notice_late: u64,
    /// Runs that fail in some way.
    pub fails: u64,
    /// Runs that do not end before faults do.
    pub hangs: u64,
    /// Runs that are settled twice.
    pub twice: u64,
    /// Grants whose job somebody cancels or moves while the reply is on its way.
    pub meddles: u64,
}

/// A queue's config, as far as plans vary it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueuePlan {
    /// The most attempts.
    pub attempts: Option<u16>,
    /// How long dead letters are kept.
    pub retention_ms: Option<u64>,
    /// Whether expired jobs become dead letters.
    pub bury_expired: bool,
    /// The most jobs.
    pub max_jobs: Option<u64>,
    /// Where due jobs go: `list:KEY` or `stream:KEY`.
    pub forward: Option<String>,
}

/// A process with one engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlan {
    /// The machine it runs on.
    pub machine: u8,
    /// When it starts.
    pub start_ms: u64,
    /// What its clock shows at the beginning.
    pub offset_ms: u64,
    /// How fast its clock goes, in millionths more than true.
    pub drift_ppm: i64,
    /// Its queues, each with a weight and a maximum.
    pub subscriptions: Vec<(usize, u16, u16)>,
    /// The most jobs it runs at once.
    pub slots: u16,
    /// `never`, `while taking`, or `always`.
    pub pump: Pump,
    /// The lease of its jobs.
    pub lease_ms: u64,
    /// How often it polls.
    pub poll_ms: u64,
    /// Its pump lease.
    pub pump_lease_ms: u64,
    /// When it takes an answer for overdue.
    pub flight_ms: u64,
    /// The most jobs it asks for at once.
    pub reserve_max: u16,
    /// The most bytes it asks for at once.
    pub reserve_bytes: u64,
    /// If it is a serverless one that cron starts anew each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Edge>,
}

/// When an engine tends shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Pump {
    Never,
    WhileTaking,
    WhenDue,
    Always,
}

/// The limits of a process that cron starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// How often it is started.
    pub every_ms: u64,
    /// How many requests it may make, deliveries included.
    pub trips: u32,
    /// How many of them a delivery costs.
    pub per_job: u32,
    /// How long a run may take.
    pub deadline_ms: u64,
    /// Runs in a hundred that end at a random await.
    pub killed: u64,
}

/// What a caller does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// When.
    pub at_ms: u64,
    /// At which process.
    pub node: usize,
    /// What.
    #[serde(flatten)]
    pub what: Asks,
}

/// What callers ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Asks {
    Publish(JobPlan),
    Take { queues: Vec<usize>, count: u16, lease_ms: u64, wait_ms: u64, forget_ms: Option<u64> },
    Cancel { queue: usize, job: u32 },
    Reschedule { queue: usize, job: u32, after_ms: u64 },
    Pause { queue: usize, paused: bool },
    Requeue { queue: usize },
    Purge { queue: usize },
    Configure { queue: usize },
    Inspect { queue: usize, job: u32 },
    List { queue: usize, place: u8 },
    Stats { queue: usize },
}

/// A job to be published. Every publish of a name has a version of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct JobPlan {
    pub queue: usize,
    pub job: u32,
    pub version: u64,
    pub delay_ms: u64,
    /// Due at this time of the run, by Redis's clock at its beginning, instead of after a delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u16>,
    /// The ladder of its backoff.
    pub backoff_ms: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_delay_ms: Option<u64>,
    pub timeout_ms: u64,
    pub bytes: usize,
    /// Whether the body cannot be compressed.
    pub dense: bool,
    pub replace: bool,
}

/// A fault that strikes at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blow {
    /// When.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub what: Strikes,
}

/// What strikes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strikes {
    /// A process ends, and another takes its place.
    Crash { node: usize, down_ms: u64 },
    /// A process stands still; its clock goes on.
    Pause { node: usize, ms: u64 },
    /// A machine stands still, and so do, unless they count the time, the clocks of its processes.
    Suspend { machine: u8, ms: u64, counted: bool },
    /// A process's connections break.
    Reset { node: usize },
    /// A process's connection for notifications breaks.
    Deafen { node: usize, ms: u64 },
    /// A process's clock jumps.
    Jump { node: usize, ms: i64 },
    /// Redis's clock jumps.
    RedisJump { ms: i64 },
    /// Redis forgets the scripts.
    Flush,
    /// Redis stands still.
    Stall { ms: u64 },
    /// Redis refuses what it can, for a reason.
    Refuse { why: Why, ms: u64 },
    /// Redis ends and starts again with all its data.
    Restart { down_ms: u64, loading_ms: u64 },
    /// A replica takes over that lacks the last writes, and whose clock is another.
    Failover { down_ms: u64, lost: usize, skew_ms: i64 },
    /// A replica takes over that lacks the last writes. The old primary follows it, and keeps its connections: only new
    /// ones lead to the new primary.
    Demote { lost: usize },
    /// Somebody empties Redis.
    FlushAll,
    /// The next answer to a process, to a command of this kind, is none of its kind.
    Garble { node: usize, verb: Verb, how: Garble },
    /// The process that tends a shard, or else this one, ends, and while it is down Redis's clock steps by minutes.
    Step { node: usize, down_ms: u64, ms: i64 },
    /// A process's engine panics; the process, with the handlers in it, is started again later.
    Panic { node: usize, down_ms: u64 },
    /// So many processes come, ask a queue for one thing each, and are not seen again.
    Visit { queue: usize, count: u64 },
    /// Somebody writes over a value of a queue's.
    Spoil { queue: usize, what: Spoil },
}

/// What somebody writes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spoil {
    /// The state of a job: this one's, or that of the next that is there.
    State { job: u32, text: String },
    /// When the lease of a job ends: this one's, or that of the next that is held. It never does.
    Score { job: u32 },
    /// A number among the fields of `meta`.
    Meta { field: String, text: String },
    /// A key, of which only the last part is named: it is a string now.
    Key { name: String },
    /// The queue's name in the index of its shard: it is gone.
    Name,
    /// `config`: it was evicted.
    Config,
}

impl Spoil {
    /// The numbers in `meta`.
    pub(super) const FIELDS: [&str; 9] =
        ["lo", "fence", "w", "published", "acked", "granted", "sessions", "exp", "big"];
    /// Texts that are no such number.
    pub(super) const TEXTS: [&str; 6] = ["", "x", "-1", "1e400", "99999999999999999999", "\u{fffd}"];
    /// The keys of a queue that can be of another type.
    pub(super) const KEYS: [(&str, Key); 10] = [
        ("agenda", Key::Agenda),
        ("queues", Key::Queues),
        ("meta", Key::Meta),
        ("pool", Key::Pool),
        ("due", Key::Due),
        ("leased", Key::Leased),
        ("state", Key::State),
        ("dead", Key::Dead),
        ("exp", Key::Exp),
        ("waiting", Key::Waiting),
    ];
}

/// Which commands a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Verb {
    Publish,
    Reserve,
    Settle,
    Extend,
    Change,
    Peek,
    Tend,
    Other,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Garble {
    /// Nobody can read it.
    Undecodable,
    /// It answers another command.
    OtherKind,
}

impl Verb {
    pub(super) const ALL: [Verb; 8] = [
        Verb::Publish,
        Verb::Reserve,
        Verb::Settle,
        Verb::Extend,
        Verb::Change,
        Verb::Peek,
        Verb::Tend,
        Verb::Other,
    ];

    pub(super) fn of(kind: Kind) -> Verb {
        match kind {
            Kind::Publish => Verb::Publish,
            Kind::Reserve => Verb::Reserve,
            Kind::Settle => Verb::Settle,
            Kind::Extend => Verb::Extend,
            Kind::Cancel | Kind::Reschedule => Verb::Change,
            Kind::Peek => Verb::Peek,
            Kind::Tend => Verb::Tend,
            _ => Verb::Other,
        }
    }
}

/// Why Redis refuses commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Why {
    Loading,
    ReadOnly,
    OutOfMemory,
    Unavailable,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Plan(Plan),
    Queue(QueuePlan),
    Node(NodePlan),
    Act(Act),
    Blow(Blow),
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = Plan { queues: vec![], nodes: vec![], acts: vec![], blows: vec![], ..self.clone() };
        let lines = std::iter::once(Line::Plan(head))
            .chain(self.queues.iter().cloned().map(Line::Queue))
            .chain(self.nodes.iter().cloned().map(Line::Node))
            .chain(self.acts.iter().cloned().map(Line::Act))
            .chain(self.blows.iter().cloned().map(Line::Blow));
        for line in lines {
            f.write_str(&serde_json::to_string(&line).map_err(|_| fmt::Error)?)?;
            f.write_char('\n')?;
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = String;

    /// Reads the lines; those that begin with `#` are comments.
    fn from_str(text: &str) -> Result<Plan, String> {
        let mut plan: Option<Plan> = None;
        for (number, line) in (1..).zip(text.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
            match (line, &mut plan) {
                (Line::Plan(head), None) => plan = Some(head),
                (Line::Queue(queue), Some(plan)) => plan.queues.push(queue),
                (Line::Node(node), Some(plan)) => plan.nodes.push(node),
                (Line::Act(act), Some(plan)) => plan.acts.push(act),
                (Line::Blow(blow), Some(plan)) => plan.blows.push(blow),
                _ => return Err(format!("line {number}: the plan's first line comes first, and once")),
            }
        }
        let plan = plan.ok_or("there is no plan in it")?;
        plan.check()?;
        Ok(plan)
    }
}

impl Plan {
    /// Whether nothing fails in it.
    pub(super) fn is_clear(&self) -> bool {
        self.rates == Rates::default() && self.blows.is_empty()
    }

    /// Whether nothing fails, and there is nothing but long-lived processes: then jobs are punctual.
    pub(super) fn is_punctual(&self) -> bool {
        self.is_clear() && self.nodes.iter().all(|node| node.edge.is_none())
    }

    /// Whether nothing fails but that answers are garbled.
    pub(super) fn is_only_garbled(&self) -> bool {
        let garbles = |blow: &Blow| matches!(blow.what, Strikes::Garble { .. });
        self.rates == Rates::default() && !self.blows.is_empty() && self.blows.iter().all(garbles)
    }

    /// How far clocks are set back, all in all. A step of minutes is none of it: no engine waits for it to be made up.
    pub(super) fn set_back_ms(&self) -> u64 {
        let back = |blow: &Blow| match blow.what {
            Strikes::Jump { ms, .. } | Strikes::RedisJump { ms } | Strikes::Failover { skew_ms: ms, .. } => {
                u64::try_from(-ms).unwrap_or(0)
            }
            Strikes::Suspend { ms, counted: false, .. } => ms,
            _ => 0,
        };
        self.blows.iter().map(back).sum()
    }

    /// What is named must be there.
    fn check(&self) -> Result<(), String> {
        let (nodes, queues) = (self.nodes.len(), self.queues.len());
        if queues == 0 || queues > super::names::MOST || nodes == 0 {
            return Err(format!("a plan has nodes, and 1 to {} queues", super::names::MOST));
        }
        for act in &self.acts {
            let named: Vec<usize> = match &act.what {
                Asks::Publish(job) => vec![job.queue],
                Asks::Take { queues, .. } => queues.clone(),
                Asks::Cancel { queue, .. }
                | Asks::Reschedule { queue, .. }
                | Asks::Pause { queue, .. }
                | Asks::Requeue { queue }
                | Asks::Purge { queue }
                | Asks::Configure { queue }
                | Asks::Inspect { queue, .. }
                | Asks::List { queue, .. }
                | Asks::Stats { queue } => vec![*queue],
            };
            if act.node >= nodes || named.is_empty() || named.iter().any(|queue| *queue >= queues) {
                return Err(format!("{act:?} names a node or a queue that is not there"));
            }
        }
        for blow in &self.blows {
            let node = match blow.what {
                Strikes::Crash { node, .. }
                | Strikes::Pause { node, .. }
                | Strikes::Reset { node }
                | Strikes::Deafen { node, .. }
                | Strikes::Jump { node, .. }
                | Strikes::Garble { node, .. }
                | Strikes::Step { node, .. }
                | Strikes::Panic { node, .. } => node,
                _ => 0,
            };
            let queue = match &blow.what {
                Strikes::Visit { queue, .. } | Strikes::Spoil { queue, .. } => *queue,
                _ => 0,
            };
            if node >= nodes || queue >= queues {
                return Err(format!("{blow:?} names a node or a queue that is not there"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_plan_gives_it_back() {
        for seed in 0..200 {
            let plan = Plan::draw(seed);
            let text = plan.to_string();
            let read: Plan = text.parse().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(read, plan);
        }
    }

    #[test]
    fn a_plan_that_names_what_is_not_there_is_refused() {
        let plan = Plan::draw(1);
        let first = plan.to_string().lines().next().map(str::to_owned).unwrap_or_default();
        assert!(first.parse::<Plan>().is_err_and(|error| error.contains("nodes")));
        let mut plan = plan;
        plan.acts.push(Act { at_ms: 0, node: 99, what: Asks::Stats { queue: 0 } });
        assert!(plan.to_string().parse::<Plan>().is_err_and(|error| error.contains("not there")));
        assert!("{}".parse::<Plan>().is_err_and(|error| error.contains("line 1")));
    }
}
