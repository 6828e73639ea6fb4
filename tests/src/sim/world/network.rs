//! What becomes of round trips and notifications.

use delayline_core::wire::Form;
use delayline_core::{Command, Kind, Refusal, Reply, Ticket};
use delayline_embedded::Notice;

use super::{Fate, What, World};
use crate::Random;
use crate::sim::model::Violation;

impl World {
    pub(super) fn send(&mut self, node: usize, ticket: Ticket, commands: Vec<Command>, forms: Vec<Form>) {
        let life = self.nodes[node].life;
        let faults = self.faults.clone();
        let net = &mut self.network;
        let (out_us, back_us) = (net.number(50..=2_000), net.number(50..=2_000));
        if net.percent(faults.refused) {
            let refused = commands.iter().map(|_| Reply::Refused(Refusal::NotConnected)).collect();
            self.after(out_us, What::Replies(node, life, ticket, refused));
            return;
        }
        let late_us =
            |net: &mut Random| if net.percent(faults.late) { net.number(50_000..=8_000_000) } else { 0 };
        let arrive_us = out_us + late_us(net);
        let answer_us = back_us + late_us(net);
        let fate = if net.percent(faults.reply_lost) {
            Fate::Unanswered
        } else if net.percent(faults.cut) {
            Fate::Cut { after: usize::try_from(net.number(0..=commands.len() as u64)).unwrap_or(0) }
        } else {
            Fate::Answered { after_us: answer_us }
        };
        let lost = net.percent(faults.request_lost);
        let noticed = !net.percent(faults.silent);
        let again_us = net.percent(faults.duplicated).then(|| net.number(1_000..=20_000_000));
        if noticed && (lost || !matches!(fate, Fate::Answered { .. })) {
            self.after(arrive_us + back_us, What::Loss(node, life, ticket));
        }
        if let Some(again_us) = again_us {
            let (commands, forms) = (commands.clone(), forms.clone());
            let copy = What::Arrive { node, life, ticket, commands, forms, fate: Fate::Unanswered };
            self.after(arrive_us + again_us, copy);
        }
        if !lost {
            self.after(arrive_us, What::Arrive { node, life, ticket, commands, forms, fate });
        }
    }

    pub(super) fn arrive(
        &mut self,
        node: usize,
        life: u32,
        ticket: Ticket,
        commands: &[Command],
        forms: &[Form],
        fate: Fate,
    ) -> Result<(), Violation> {
        let most = if let Fate::Cut { after } = fate { after } else { commands.len() };
        let mut replies = Vec::with_capacity(commands.len());
        for (command, form) in commands.iter().zip(forms).take(most) {
            replies.push(self.execute(command, *form)?);
        }
        if let Fate::Answered { after_us } = fate {
            self.after(after_us, What::Replies(node, life, ticket, replies));
        }
        Ok(())
    }

    pub(super) fn execute(&mut self, command: &Command, form: Form) -> Result<Reply, Violation> {
        let script = script_of(command.kind());
        if form == Form::Source {
            self.scripts.insert(script);
        } else if !self.scripts.contains(&script) {
            return Ok(Reply::Refused(Refusal::NoScript));
        }
        let now = self.redis_now();
        let reply = self.store.execute(now, command);
        if self.print {
            println!("    {command:?}\n    -> {reply:?}");
        }
        self.model.observe(now, command, &reply)?;
        while let Some(notice) = self.store.poll_wakeup() {
            self.notify(&notice);
        }
        Ok(reply)
    }

    pub(super) fn notify(&mut self, notice: &Notice) {
        let Some(&node) = self.live_identities.get(&notice.to) else { return };
        let times = match self.network.number(0..=99) {
            n if n < self.faults.notice_lost => 0,
            n if n < self.faults.notice_lost * 2 => 2,
            _ => 1,
        };
        for _ in 0..times {
            let (us, life) = (self.network.number(50..=5_000), self.nodes[node].life);
            self.after(us, What::Notice(node, life, notice.wakeup.clone()));
        }
    }
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
