use super::audit::{Audit, Rule};
use super::history::{Answer, Asked, Call, End, Letter, Loss, Run, Story};
use super::worker::{BURIED, failed};

/// All that is known of one job.
pub(super) struct Case<'a> {
    pub(super) id: &'a str,
    pub(super) story: &'a Story,
    /// In the order of their grants.
    pub(super) runs: Vec<&'a Run>,
    pub(super) letter: Option<&'a Letter>,
    pub(super) is_held: bool,
    pub(super) losses: &'a [Loss],
}

impl Case<'_> {
    pub(super) fn judge(&self, audit: &mut Audit) {
        if self.is_held {
            self.wrong(audit, Rule::AllSettles, "it waits or is held at the end".to_string());
        }
        self.vanishing(audit);
        for run in &self.runs {
            self.origin(audit, run.published);
            self.earliness(audit, run);
            self.attempt(audit, run);
        }
        for (at, before) in self.runs.iter().enumerate() {
            for after in &self.runs[at + 1..] {
                self.overlap(audit, before, after);
            }
        }
        self.spending(audit);
        for call in self.story.calls.iter().filter(|call| matches!(call.answer, Answer::Done(_))) {
            match call.what {
                Asked::Cancel => self.cancelling(audit, call),
                Asked::Settle(fence, End::Done) => self.acking(audit, call, fence),
                _ => {}
            }
        }
        if let Some(letter) = self.letter {
            self.origin(audit, letter.published);
            self.death(audit, letter);
        }
    }

    fn wrong(&self, audit: &mut Audit, rule: Rule, what: String) {
        audit.break_rule(rule, Some(self.id), what);
    }

    /// It is wrong, unless it is of writes that may be lost.
    fn wrong_unless(&self, audit: &mut Audit, is_lost: bool, rule: Rule, what: String) {
        if is_lost {
            audit.undone.push(format!("{}: {what}", self.id));
        } else {
            self.wrong(audit, rule, what);
        }
    }

    fn publishes(&self) -> impl Iterator<Item = &Call> {
        self.story.calls.iter().filter(|call| matches!(call.what, Asked::Publish(_)))
    }

    /// The call that published what carries this time.
    fn publish_of(&self, published: u64) -> Option<&Call> {
        self.publishes().find(|call| call.published(published))
    }

    fn may_lose(&self, from: u64, to: u64) -> bool {
        self.losses.iter().any(|loss| loss.covers(from, to))
    }

    fn may_lose_call(&self, call: &Call) -> bool {
        self.may_lose(call.from, call.to)
    }

    fn may_lose_grant(&self, run: &Run) -> bool {
        self.may_lose(run.granted.saturating_sub(1) * 1_000, run.granted * 1_000)
    }

    fn vanishing(&self, audit: &mut Audit) {
        let accepted = |call: &&Call| matches!(call.answer, Answer::Done(_) | Answer::Duplicate);
        for call in self.publishes().filter(accepted) {
            audit.acknowledged += 1;
            let is_it = |published: u64| call.answer == Answer::Duplicate || call.published(published);
            let is_done =
                self.runs.iter().any(|run| is_it(run.published) && matches!(run.end, Some((End::Done, _))));
            let is_dead = self.letter.is_some_and(|letter| is_it(letter.published));
            let cancels = self.story.calls.iter().filter(|call| call.what == Asked::Cancel);
            let mut cancels = cancels.filter(|call| matches!(call.answer, Answer::Done(_) | Answer::Unknown));
            if is_done || is_dead || self.is_held || cancels.next().is_some() {
                continue;
            }
            if self.story.ttl.is_some() {
                audit.expired += 1;
            } else if self.may_lose_call(call) {
                audit.lost.push(self.id.to_string());
            } else {
                self.wrong(audit, Rule::NothingVanishes, format!("accepted at {} µs, and gone", call.to));
            }
        }
    }

    fn origin(&self, audit: &mut Audit, published: u64) {
        let what = match self.publish_of(published).map(|call| call.answer) {
            None => "nobody published it then",
            Some(Answer::NotDone) => "its publisher was told that it was not done",
            Some(Answer::Missed) => "its publisher was told nothing sensible",
            Some(Answer::Done(_) | Answer::Duplicate | Answer::Unknown) => return,
        };
        self.wrong(audit, Rule::NothingFromNowhere, format!("published at {published} ms: {what}"));
    }

    fn earliness(&self, audit: &mut Audit, run: &Run) {
        let Run { due, granted, attempt, .. } = *run;
        if granted < due {
            let what = format!("attempt {attempt} was granted at {granted} ms, {} ms early", due - granted);
            self.wrong(audit, Rule::NeverEarly, what);
        }
        if let Some(earliest) = self.earliest_due(run).filter(|earliest| due < *earliest) {
            let what =
                format!("attempt {attempt} was due at {due} ms, {} ms before it was to be", earliest - due);
            self.wrong(audit, Rule::NeverEarly, what);
        }
    }

    /// The earliest due time that anybody asked for. Whatever is known to have been superseded counts no more.
    fn earliest_due(&self, run: &Run) -> Option<u64> {
        let publish = self.publish_of(run.published)?;
        let mut times = vec![due(publish)?];
        let superseded = |call: &Call| {
            matches!(publish.answer, Answer::Done(_))
                && matches!(call.answer, Answer::Done(_))
                && call.to < run.granted * 1_000
                && !self.may_lose_call(call)
        };
        let reschedules = self.story.calls.iter().filter(|call| matches!(call.what, Asked::Reschedule(_)));
        let (mut certain, mut doubtful) = (Vec::new(), Vec::new());
        for call in reschedules {
            let Some(due) = due(call) else { continue };
            if superseded(call) { certain = vec![due] } else { doubtful.push(due) }
        }
        if !certain.is_empty() {
            times = certain;
        }
        times.into_iter().chain(doubtful).min()
    }

    fn attempt(&self, audit: &mut Audit, run: &Run) {
        if run.attempt > self.story.attempts {
            let what = format!("attempt {} of {}", run.attempt, self.story.attempts);
            self.wrong(audit, Rule::AttemptsAreLimited, what);
        }
    }

    /// Attempts that were not given back, of each job that had the id.
    fn spending(&self, audit: &mut Audit) {
        let mut published: Vec<u64> = self.runs.iter().map(|run| run.published).collect();
        published.sort_unstable();
        published.dedup();
        for published in published {
            let given_back = |end| matches!(end, Some((End::Snoozed(_) | End::Dropped, _)));
            let spent = self.runs.iter().filter(|run| run.published == published && !given_back(run.end));
            let (mut count, mut is_lost) = (0, false);
            for run in spent {
                count += 1;
                is_lost |= self.may_lose_grant(run);
            }
            if count > usize::from(self.story.attempts) {
                let what = format!("{count} attempts were spent of {}", self.story.attempts);
                self.wrong_unless(audit, is_lost, Rule::AttemptsAreLimited, what);
            }
        }
    }

    fn overlap(&self, audit: &mut Audit, before: &Run, after: &Run) {
        if before.fence == after.fence {
            let (fence, one, other) = (before.fence, &before.consumer, &after.consumer);
            self.wrong(audit, Rule::FencesDiffer, format!("grant {fence} was run by {one} and by {other}"));
            return;
        }
        let (free, is_extension_lost) = self.free_at(before, after);
        if after.granted < free {
            let what = format!(
                "granted to {} at {} ms, fence {}, {} ms before that of {}, fence {}, could end",
                after.consumer,
                after.granted,
                after.fence,
                free - after.granted,
                before.consumer,
                before.fence
            );
            let is_lost = self.may_lose_grant(before) || is_extension_lost;
            self.wrong_unless(audit, is_lost, Rule::OneLiveLease, what);
        }
    }

    /// When another grant may come at the earliest, in ms, and whether an extension of the lease may be lost.
    fn free_at(&self, before: &Run, after: &Run) -> (u64, bool) {
        let ends = self.story.lease_end(before);
        let extension = Asked::Extend(before.fence);
        let mut extended = self.story.calls.iter().filter(|call| call.what == extension);
        let may_be_lost =
            extended.any(|call| matches!(call.answer, Answer::Done(_)) && self.may_lose_call(call));
        let is_same = before.published == after.published;
        let free = match before.end {
            Some((_, at)) if !is_same => at / 1_000,
            Some((End::Failed, at)) => at / 1_000 + self.story.backoff,
            Some((End::Snoozed(ms), at)) => at / 1_000 + ms,
            Some((End::Dropped, at)) => at / 1_000,
            Some((End::Done | End::Buried, _)) | None => ends,
        };
        (free.min(ends), may_be_lost)
    }

    fn cancelling(&self, audit: &mut Audit, cancel: &Call) {
        let published_before = |run: &&&Run| {
            let publish = self.publish_of(run.published);
            publish.is_some_and(|call| matches!(call.answer, Answer::Done(_)) && call.to <= cancel.from)
        };
        let mut later = self.runs.iter().filter(|run| run.granted * 1_000 > cancel.to + 1_000);
        if let Some(run) = later.find(published_before) {
            let what = format!("cancelled at {} µs, and granted at {} ms", cancel.to, run.granted);
            self.wrong_unless(audit, self.may_lose_call(cancel), Rule::CancelledIsGone, what);
        }
    }

    fn acking(&self, audit: &mut Audit, ack: &Call, fence: u64) {
        let Some(acked) = self.runs.iter().find(|run| run.fence == fence) else { return };
        let later = self.runs.iter().filter(|run| run.published == acked.published);
        for run in later.filter(|run| (run.granted, run.fence) > (acked.granted, acked.fence)) {
            let what = format!(
                "acked at {} µs by fence {fence}, and granted at {} ms by fence {}",
                ack.to, run.granted, run.fence
            );
            // The repeat of an ack that was lost finds no job, whoever has ended it.
            let was_done = matches!(run.end, Some((End::Done, at)) if at <= ack.to);
            if was_done && run.granted * 1_000 <= ack.to {
                audit.mistaken.push(format!("{}: {what}", self.id));
                continue;
            }
            // The repeat of an ack whose grant was lost finds nothing to settle either.
            let is_lost = self.may_lose_call(ack) || self.may_lose_grant(run) || self.may_lose_grant(acked);
            self.wrong_unless(audit, is_lost, Rule::AckIsFinal, what);
        }
    }

    fn death(&self, audit: &mut Audit, letter: &Letter) {
        let Letter { reason, attempt, .. } = letter;
        let Story { attempts, fails, end, .. } = *self.story;
        let is_so = match reason.as_str() {
            BURIED => end == End::Buried,
            "lease ended" => *attempt == attempts,
            other => *attempt == attempts && fails >= attempts && other == failed(attempts),
        };
        if !is_so {
            let what = format!("dead after attempt {attempt} of {attempts}, since {reason:?}");
            self.wrong(audit, Rule::DeathHasAReason, what);
        }
    }
}

/// When a job is due at the earliest if this call was carried out, in ms.
fn due(call: &Call) -> Option<u64> {
    let (Asked::Publish(delay) | Asked::Reschedule(delay)) = call.what else { return None };
    match call.answer {
        Answer::Done(due) => Some(due),
        Answer::Unknown => Some(call.from / 1_000 + delay),
        Answer::Duplicate if matches!(call.what, Asked::Publish(_)) => Some(call.from / 1_000 + delay),
        Answer::Duplicate | Answer::Missed | Answer::NotDone => None,
    }
}
