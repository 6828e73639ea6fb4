use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::base::{Base, Timer};
use super::set::Set;
use super::window::Window;
use crate::{Answer, Backlogged, Command, Fault, Job, Key, QueueName, Refusal, Take, Token};

/// Who waits for jobs to be handed out.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Takes {
    waiting: Window<Token, Box<Waiting>>,
    by_queue: LiteMap<QueueName, Asked>,
    /// How many takes there ever were.
    begun: u64,
}

/// Who waits for jobs of a queue.
#[derive(Default, Serialize, Deserialize)]
struct Asked {
    tokens: Set<Token>,
    /// How many takes had begun when a reserve of the queue was answered last.
    answered: u64,
}

#[derive(Serialize, Deserialize)]
struct Waiting {
    take: Take,
    /// Which queue is asked next; past the end, the take waits on all of them.
    asking: usize,
    promised: bool,
    /// How many takes had begun before.
    number: u64,
    /// Why the last reserve for it got no proper answer, if asking again does not help.
    stuck: Option<Stuck>,
    deadline: Key,
}

#[derive(Serialize, Deserialize)]
enum Stuck {
    Broken(String),
    Gated(QueueName, String),
}

/// Takes that one reserve can serve.
pub(super) struct Group {
    pub(super) lease_ms: u64,
    pub(super) tokens: Vec<(Token, u16)>,
}

/// What is left after jobs were handed out.
pub(super) struct HandedOut {
    /// Jobs that nobody waits for any more.
    pub(super) unwanted: Vec<Job>,
    /// The queues to be asked next, for takes that go from one to the other.
    pub(super) asking: Vec<QueueName>,
    /// The queues of takes that were answered: perhaps nobody waits for them any more.
    pub(super) left: Vec<QueueName>,
}

impl Stuck {
    fn of(fault: &Fault) -> Option<Stuck> {
        match fault {
            Fault::Broken(why) => Some(Stuck::Broken(why.clone())),
            Fault::Gated { queue, gate } => Some(Stuck::Gated(queue.clone(), gate.clone())),
            _ => None,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Stuck::Broken(why) => Fault::Broken(why.clone()),
            Stuck::Gated(queue, gate) => Fault::Gated { queue: queue.clone(), gate: gate.clone() },
        }
    }
}

impl Takes {
    pub(super) fn insert(
        &mut self,
        base: &mut Base,
        token: Token,
        take: Take,
    ) -> Result<(), Backlogged<Take>> {
        if self.waiting.len() >= base.config.pending_requests {
            return Err(Backlogged(take));
        }
        for queue in &take.queues {
            self.by_queue.entry(queue.clone()).or_default().tokens.insert(token);
        }
        // A part of this millisecond is over, unless the clock is a test's: a wait is not to end before its time.
        let wait_ms = take.wait_ms.saturating_add(u64::from(!base.config.same_clock));
        let patience_ms = if take.wait_ms > 0 { wait_ms } else { 2 * base.config.flight_ms };
        let deadline = base.after(patience_ms, Timer::TakeDeadline(token));
        let number = self.begun;
        self.begun += 1;
        let waiting = Waiting { take, asking: 0, promised: false, number, stuck: None, deadline };
        self.waiting.insert(token, Box::new(waiting));
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a take was told by all of its queues that they have nothing, and waits.
    pub(super) fn any_waits(&self) -> bool {
        self.waiting.values().any(|waiting| waiting.asking >= waiting.take.queues.len())
    }

    pub(super) fn any_names(&self, queue: &QueueName) -> bool {
        self.by_queue.contains_key(queue)
    }

    /// Whether a take could be served from this queue now.
    pub(super) fn any_for(&self, queue: &QueueName) -> bool {
        self.eligible(queue).next().is_some()
    }

    fn eligible<'a>(&'a self, queue: &'a QueueName) -> impl Iterator<Item = (Token, &'a Waiting)> {
        let tokens = self.by_queue.get(queue).into_iter().flat_map(|asked| asked.tokens.iter());
        tokens.filter_map(|token| Some((*token, &**self.waiting.get(token)?))).filter(move |(_, waiting)| {
            !waiting.promised && waiting.take.queues.get(waiting.asking).is_none_or(|asked| asked == queue)
        })
    }

    /// The first take that this queue could serve, with those of the same lease that fit into one reserve.
    pub(super) fn group_for(&self, queue: &QueueName, most: u16) -> Option<Group> {
        let lease_ms = self.eligible(queue).next()?.1.take.lease_ms;
        let (mut tokens, mut left) = (Vec::new(), most.min(Command::GRANTS_MAX));
        for (token, waiting) in self.eligible(queue).filter(|(_, waiting)| waiting.take.lease_ms == lease_ms)
        {
            let count = waiting.take.count.min(left);
            if count == 0 {
                break;
            }
            left -= count;
            tokens.push((token, count));
        }
        (!tokens.is_empty()).then_some(Group { lease_ms, tokens })
    }

    pub(super) fn promise(&mut self, tokens: &[(Token, u16)]) {
        self.set_promised(tokens, true);
    }

    /// The reserve for them got no proper answer.
    pub(super) fn unpromise(&mut self, tokens: &[(Token, u16)], fault: &Fault) {
        self.set_promised(tokens, false);
        for (token, _) in tokens {
            if let Some(waiting) = self.waiting.get_mut(token) {
                waiting.stuck = Stuck::of(fault).or(waiting.stuck.take());
            }
        }
    }

    /// A reserve of this queue was answered, and so is whoever waits for its jobs: thousands may.
    pub(super) fn is_answered(&mut self, queue: &QueueName) {
        if let Some(asked) = self.by_queue.get_mut(queue) {
            asked.answered = self.begun;
        }
    }

    /// Whether a reserve of one of its queues was answered since it began.
    fn was_answered(&self, waiting: &Waiting) -> bool {
        let mut queues = waiting.take.queues.iter().filter_map(|queue| self.by_queue.get(queue));
        queues.any(|asked| asked.answered > waiting.number)
    }

    fn set_promised(&mut self, tokens: &[(Token, u16)], promised: bool) {
        for (token, _) in tokens {
            if let Some(waiting) = self.waiting.get_mut(token) {
                waiting.promised = promised;
            }
        }
    }

    /// Answers those that got jobs, and moves the others on to their next queue.
    pub(super) fn hand_out(
        &mut self,
        base: &mut Base,
        queue: &QueueName,
        tokens: &[(Token, u16)],
        jobs: Vec<Job>,
    ) -> HandedOut {
        let mut jobs = jobs.into_iter();
        let (mut asking, mut left) = (Vec::new(), Vec::new());
        for (token, count) in tokens {
            let Some(waiting) = self.waiting.get_mut(token) else { continue };
            waiting.promised = false;
            let got: Vec<Job> = jobs.by_ref().take(usize::from(*count)).collect();
            if got.is_empty() {
                if waiting.take.queues.get(waiting.asking) == Some(queue) {
                    waiting.asking += 1;
                }
                asking.extend(waiting.take.queues.get(waiting.asking).cloned());
                if waiting.asking < waiting.take.queues.len() || waiting.take.wait_ms > 0 {
                    continue;
                }
            }
            left.extend(self.answer(base, *token, Ok(Answer::Taken(got))));
        }
        HandedOut { unwanted: jobs.collect(), asking, left }
    }

    pub(super) fn queues(&self, token: Token) -> &[QueueName] {
        self.waiting.get(&token).map_or(&[], |waiting| &waiting.take.queues)
    }

    /// The wait is over: nothing came, or no reserve was answered.
    pub(super) fn handle_deadline(
        &mut self,
        base: &mut Base,
        token: Token,
        trouble: Option<Refusal>,
    ) -> Vec<QueueName> {
        let Some(waiting) = self.waiting.get(&token) else { return Vec::new() };
        let answer = match &waiting.stuck {
            _ if self.was_answered(waiting) => Ok(Answer::Taken(Vec::new())),
            Some(stuck) => Err(stuck.fault()),
            None => Err(Fault::NotSent(trouble)),
        };
        self.answer(base, token, answer)
    }

    pub(super) fn forget(&mut self, base: &mut Base, token: Token) -> Vec<QueueName> {
        self.remove(base, token).map(|waiting| waiting.take.queues).unwrap_or_default()
    }

    /// Nothing comes any more.
    pub(super) fn drain(&mut self, base: &mut Base) {
        while let Some(&(token, _)) = self.waiting.first() {
            let nothing =
                if base.other.is_some() { Err(base.closed()) } else { Ok(Answer::Taken(Vec::new())) };
            self.answer(base, token, nothing);
        }
    }

    fn answer(&mut self, base: &mut Base, token: Token, answer: Result<Answer, Fault>) -> Vec<QueueName> {
        let Some(waiting) = self.remove(base, token) else { return Vec::new() };
        base.answer(token, answer);
        waiting.take.queues
    }

    fn remove(&mut self, base: &mut Base, token: Token) -> Option<Box<Waiting>> {
        let waiting = self.waiting.remove(&token)?;
        base.wheel.cancel(waiting.deadline);
        for queue in &waiting.take.queues {
            if let Some(asked) = self.by_queue.get_mut(queue) {
                asked.tokens.remove(&token);
                if asked.tokens.is_empty() {
                    self.by_queue.remove(queue);
                }
            }
        }
        Some(waiting)
    }
}
