//! What becomes of round trips and notifications.

use delayline_core::wire::Form;
use delayline_core::{Command, Kind, Refusal, Reply, Ticket, Transmit};
use delayline_embedded::Notice;

use super::{Fate, Request, What, World};
use crate::Random;
use crate::sim::draw;
use crate::sim::mistake::Slip;
use crate::sim::model::{Checked, ensure, key_of};
use crate::sim::node::Flying;
use crate::sim::plan::{Garble, Verb, Why};

const COMMANDS_MAX: usize = 32;
const IN_THE_AIR_MAX: usize = 64;

impl World<'_> {
    pub(super) fn send(&mut self, node: usize, ticket: Ticket, commands: Vec<Command>, forms: Vec<Form>) {
        let rates = self.rates.clone();
        self.pay(node, 1);
        let sender = &mut self.nodes[node];
        let (life, connection, term) = (sender.life, sender.connection, sender.term);
        let asks_for_jobs = |(place, command): (usize, &Command)| match command {
            Command::Reserve { queue, .. } => Some((place, queue.clone())),
            _ => None,
        };
        let reserves = commands.iter().enumerate().filter_map(asks_for_jobs).collect();
        sender.flying.insert(ticket, Flying { sent_us: self.now_us, reserves });
        let net = &mut sender.network;
        let (out_us, back_us) = (net.number(50..=2_000), net.number(50..=2_000));
        if self.redis.down || net.percent(rates.refused) {
            let refused = commands.iter().map(|_| Reply::Refused(Refusal::NotConnected)).collect();
            self.after(out_us, What::Replies { node, life, connection, ticket, replies: refused });
            return;
        }
        let late_us =
            |net: &mut Random| if net.percent(rates.late) { net.number(50_000..=8_000_000) } else { 0 };
        let arrive_us = out_us + late_us(net);
        let answer_us = back_us + late_us(net);
        let fate = if net.percent(rates.reply_lost) {
            Fate::Unanswered
        } else if net.percent(rates.cut) {
            Fate::Cut { after: usize::try_from(net.number(0..=commands.len() as u64)).unwrap_or(0) }
        } else {
            Fate::Answered { after_us: answer_us }
        };
        let lost = net.percent(rates.request_lost);
        let noticed = !net.percent(rates.silent);
        let again_us = net.percent(rates.duplicated).then(|| net.number(1_000..=rates.duplicate_ms * 1000));
        if noticed && (lost || !matches!(fate, Fate::Answered { .. })) {
            self.after(arrive_us + back_us, What::Loss(node, life, ticket));
        }
        if let Some(story) = &mut self.story {
            let fate = match fate {
                _ if lost => "; the request is lost",
                Fate::Answered { .. } => "",
                Fate::Unanswered => "; the reply will be lost",
                Fate::Cut { .. } => "; the connection will break on the way",
            };
            story.sends(self.now_us, node, &commands, fate);
        }
        let request = Request { node, life, connection, ticket, term, commands, forms, fate, copy: false };
        if let Some(again_us) = again_us {
            let copy = Request { fate: Fate::Unanswered, copy: true, ..request.clone() };
            self.after(arrive_us + again_us, What::Arrive(Box::new(copy)));
        }
        if !lost {
            self.after(arrive_us, What::Arrive(Box::new(request)));
        }
    }

    /// A round trip is no larger than the contract says.
    pub(super) fn check_transmit(&self, node: usize, transmit: &Transmit<'_>) -> Checked {
        let (commands, forms) = (transmit.commands, transmit.forms);
        ensure!(commands.len() == forms.len(), "a transmit is whole", "{} forms", forms.len());
        ensure!(commands.len() <= COMMANDS_MAX, "every list is bounded", "{} commands", commands.len());
        for command in commands {
            let jobs = match command {
                Command::Publish { jobs, .. } => jobs.len(),
                Command::Settle { leases, .. } => leases.len(),
                Command::Extend { leases, .. } => leases.len(),
                Command::Reserve { count, .. } => usize::from(*count),
                _ => 0,
            };
            let most = match command {
                Command::Reserve { .. } => usize::from(Command::GRANTS_MAX),
                _ => Command::JOBS_MAX,
            };
            ensure!(jobs <= most, "every list is bounded", "{:?} of {jobs} jobs", command.kind());
        }
        let (now_us, flight_us) = (self.now_us, self.nodes[node].config.flight_ms * 1000);
        let flying =
            self.nodes[node].flying.values().filter(|flying| now_us - flying.sent_us < flight_us).count();
        ensure!(flying <= IN_THE_AIR_MAX, "every list is bounded", "node {node}: {flying} in the air");
        Ok(())
    }

    pub(super) fn arrive(&mut self, request: Request) -> Checked {
        if self.redis.still_until_us > self.now_us {
            self.at(self.redis.still_until_us, What::Arrive(Box::new(request)));
            return Ok(());
        }
        let Request { node, life, connection, ticket, term, fate, copy, .. } = request;
        let broken = self.nodes[node].connection != connection;
        if self.redis.down || (broken && !copy && self.nodes[node].network.percent(50)) {
            return Ok(());
        }
        // Whoever sends a request twice gets one answer: what was refused is not sent again behind the engine's back.
        if copy && self.refused.contains(&(node, life, ticket)) {
            return Ok(());
        }
        if copy {
            self.marks.reach("a duplicate arrives late");
        }
        let most = if let Fate::Cut { after } = fate { after } else { request.commands.len() };
        if most < request.commands.len() && most > 0 {
            self.marks.reach("a half-run pipeline");
        }
        let mut replies = Vec::with_capacity(request.commands.len());
        for (command, form) in request.commands.iter().zip(&request.forms).take(most) {
            let demoted = term < self.redis.term && !reads_only(command.kind());
            if demoted {
                self.marks.reach("a request reaches a demoted primary");
                replies.push(Reply::Refused(Refusal::ReadOnly));
                self.tell_redis(command, &Reply::Refused(Refusal::ReadOnly));
                continue;
            }
            replies.push(self.execute(command, *form)?);
        }
        if replies.iter().any(|reply| matches!(reply, Reply::Refused(_))) {
            self.refused.insert((node, life, ticket));
        }
        if let Fate::Answered { after_us } = fate {
            self.garble(node, &request.commands, &mut replies);
            self.after(after_us, What::Replies { node, life, connection, ticket, replies });
        }
        Ok(())
    }

    /// The first reply to a command of the kind that one is to be garbled for is.
    fn garble(&mut self, node: usize, commands: &[Command], replies: &mut [Reply]) {
        let this = &mut self.nodes[node];
        for (command, reply) in commands.iter().zip(replies) {
            let verb = Verb::of(command.kind());
            let garbles = |(of, _): &(Verb, Garble)| *of == verb && !matches!(reply, Reply::Refused(_));
            let Some(place) = this.garbles.iter().position(garbles) else { continue };
            let (_, how) = this.garbles.remove(place);
            *reply = match how {
                Garble::Undecodable => Reply::Broken(format!("{verb:?} answered nonsense")),
                Garble::OtherKind => Reply::Named { cursor: 0, queues: Vec::new() },
            };
            this.was_garbled = true;
            self.marks.reach("an answer is nonsense");
        }
    }

    /// The replies of a round trip come back. A driver drops a connection that leads to where nothing can be written.
    pub(super) fn deliver(&mut self, node: usize, ticket: Ticket, replies: Vec<Reply>) -> Checked {
        let this = &mut self.nodes[node];
        if let Some(flying) = this.flying.remove(&ticket) {
            this.was_answered(&flying, &replies);
            if self.now_us - flying.sent_us > this.config.flight_ms * 1000 {
                self.marks.reach("a reply arrives after its flight was given up");
            }
        }
        let moved = |reply: &Reply| matches!(reply, Reply::Refused(why) if why.asks_for_another_server());
        let dropped = replies.iter().any(moved);
        let nonsense = replies.iter().any(|reply| matches!(reply, Reply::Broken(_)));
        if nonsense && self.slips(Slip::NonsenseEnds) {
            return self.end_engine(node, 1_000);
        }
        self.with(node, |engine, now| engine.handle_replies(now, ticket, replies))?;
        if dropped && !self.slips(Slip::DemotedKept) {
            self.reset(node);
        }
        Ok(())
    }

    pub(super) fn execute(&mut self, command: &Command, form: Form) -> Checked<Reply> {
        if let Some(why) = self.refusal(command) {
            self.marks.reach("a refusal");
            let reply = Reply::Refused(why);
            self.tell_redis(command, &reply);
            return Ok(reply);
        }
        let script = script_of(command.kind());
        if form == Form::Source {
            self.redis.scripts.insert(script);
        } else if !self.redis.scripts.contains(&script) {
            self.marks.reach("a script is not known");
            return Ok(Reply::Refused(Refusal::NoScript));
        }
        let now = self.redis_now();
        let sessions = command.queue().and_then(|queue| self.store.sessions(queue));
        let (births, reply) = (self.ledger.births, self.store.execute(now, command));
        self.tell_redis(command, &reply);
        self.check_swept(command, sessions)?;
        self.ledger.observe(now, command, &reply, &mut self.witness, &mut self.marks)?;
        self.check_told(now, command, &reply)?;
        if let Some(queue) = command.queue() {
            self.check_punctual(queue)?;
        }
        if let Some(log) = &mut self.redis.log {
            log.push((now, command.clone(), reply.clone()));
        }
        let notices = self.store.heard();
        self.check_announced(births, &notices)?;
        for notice in notices {
            self.notify(&notice);
        }
        self.meddle(command, &reply);
        Ok(reply)
    }

    fn tell_redis(&mut self, command: &Command, reply: &Reply) {
        if let Some(story) = &mut self.story {
            story.redis(self.now_us, command, reply);
        }
    }

    /// Why Redis refuses the command now, if it does. Scripts that only read, or remove before they grow, run where
    /// others do not.
    fn refusal(&mut self, command: &Command) -> Option<Refusal> {
        let (why, until) = self.redis.refuses?;
        if until <= self.now_us {
            self.redis.refuses = None;
            return None;
        }
        let reads = reads_only(command.kind());
        let grows = matches!(command.kind(), Kind::Publish | Kind::Configure);
        match why {
            Why::Loading => Some(Refusal::Loading),
            Why::Unavailable => Some(Refusal::Unavailable),
            Why::ReadOnly => (!reads).then_some(Refusal::ReadOnly),
            Why::OutOfMemory => grows.then_some(Refusal::OutOfMemory),
        }
    }

    /// Somebody changes a job at the worst moment: it is granted, and nobody has heard of it yet.
    fn meddle(&mut self, command: &Command, reply: &Reply) {
        let Reply::Granted { jobs, .. } = reply else { return };
        let Some(queue) = command.queue().filter(|_| !self.calm && self.rates.meddles > 0) else { return };
        for grant in jobs {
            let Ok((queue, job)) = key_of(queue, &grant.id) else { continue };
            if self.handlers.percent(self.rates.meddles) {
                let what = draw::change(&mut self.handlers, queue, job);
                let (us, node) = (self.handlers.number(1..=6_000), self.some_node());
                self.act_after(us, node, what);
            }
        }
    }

    fn notify(&mut self, notice: &Notice) {
        let Some(&node) = self.live.get(&notice.to) else { return };
        let rates = self.rates.clone();
        let (life, net) = (self.nodes[node].life, &mut self.nodes[node].network);
        let times =
            if net.percent(rates.notice_lost) { 0 } else { 1 + u64::from(net.percent(rates.notice_twice)) };
        let mut delays = Vec::new();
        for _ in 0..times {
            let late = net.percent(rates.notice_late);
            delays.push(net.number(50..=if late { 5_000_000 } else { 5_000 }));
        }
        for us in delays {
            self.after(us, What::Notice(node, life, notice.wakeup.clone()));
        }
    }
}

/// A replica carries it out too.
fn reads_only(kind: Kind) -> bool {
    matches!(kind, Kind::Stats | Kind::Inspect | Kind::List(_) | Kind::Queues | Kind::Server)
}

fn script_of(kind: Kind) -> u8 {
    match kind {
        Kind::Publish => 0,
        Kind::Reserve => 1,
        Kind::Settle => 2,
        Kind::Extend => 3,
        Kind::Cancel => 4,
        Kind::Reschedule => 5,
        Kind::Peek => 6,
        Kind::Tend => 7,
        _ => 8,
    }
}
