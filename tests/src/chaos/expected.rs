use std::collections::{BTreeMap, BTreeSet};

use super::history::{Answer, Asked, End, History, Ledger, Run, Story};

/// What the counters of a queue can be, by what its clients and consumers saw: at least, and at most.
pub(super) struct Expected {
    published: [usize; 2],
    cancelled: [usize; 2],
    acked: [usize; 2],
    expired: [usize; 2],
}

impl Expected {
    pub(super) fn of(history: &History, queue: &str) -> Expected {
        let jobs: BTreeMap<&str, &Story> = history
            .jobs
            .iter()
            .filter(|(_, job)| job.queue == queue)
            .map(|(id, job)| (id.as_str(), job))
            .collect();
        let calls = |is: fn(&Asked) -> bool, known: fn(Answer) -> bool| {
            let calls = jobs.values().flat_map(|job| &job.calls);
            calls.filter(|call| is(&call.what) && known(call.answer)).count()
        };
        let done = |answer| matches!(answer, Answer::Done(_));
        let maybe = |answer| matches!(answer, Answer::Done(_) | Answer::Unknown);
        let publish = |asked: &Asked| matches!(asked, Asked::Publish(_));
        let cancel = |asked: &Asked| *asked == Asked::Cancel;
        let runs = history.runs.iter().filter(|run| jobs.contains_key(run.id.as_str()));
        let ended: Vec<&Run> = runs.filter(|run| matches!(run.end, Some((End::Done, _)))).collect();
        let acked = ended.iter().copied().filter(|run| {
            let (story, is_dead) = (jobs[run.id.as_str()], history.dead.contains_key(&run.id));
            is_acked(story, run, is_dead)
        });
        let acked = each(acked);
        let mortal = jobs.values().filter(|job| job.ttl.is_some());
        let mortal: usize =
            mortal.map(|job| job.calls.iter().filter(|call| publish(&call.what)).count()).sum();
        Expected {
            published: [calls(publish, done), calls(publish, maybe)],
            cancelled: [calls(cancel, done), calls(cancel, maybe)],
            acked: [acked, each(ended.into_iter())],
            expired: [0, mortal],
        }
    }

    pub(super) fn differences(&self, ledger: &Ledger) -> Vec<String> {
        let counters = &ledger.counters;
        let pairs = [
            ("published", counters.published, self.published),
            ("cancelled", counters.cancelled, self.cancelled),
            ("acked", counters.acked, self.acked),
            ("expired", counters.expired, self.expired),
        ];
        let wrong = pairs.into_iter().filter(|(_, said, [least, most])| {
            let said = usize::try_from(*said).unwrap_or(usize::MAX);
            said < *least || said > *most
        });
        wrong.map(|(name, said, [least, most])| format!("{name} is {said}, not {least} to {most}")).collect()
    }
}

/// How many jobs they are of.
fn each<'a>(runs: impl Iterator<Item = &'a Run>) -> usize {
    runs.map(|run| (&run.id, run.published)).collect::<BTreeSet<_>>().len()
}

/// Whether its ack has ended the job for certain. One that was answered when the lease was over may have found that the job
/// had come to another end.
fn is_acked(story: &Story, run: &Run, is_dead: bool) -> bool {
    let can_end_otherwise =
        is_dead || story.ttl.is_some() || story.calls.iter().any(|call| call.what == Asked::Cancel);
    let mut acks = story.calls.iter().filter(|call| call.what == Asked::Settle(run.fence, End::Done));
    acks.any(|ack| {
        let in_time = ack.to / 1_000 < story.lease_end(run);
        matches!(ack.answer, Answer::Done(_)) && (in_time || !can_end_otherwise)
    })
}
