//! Forged histories, one for each rule: the audit must find what is wrong with them, and nothing in one that is right.

use delayline_core::Counters;

use super::audit::{Audit, Rule};
use super::history::{Answer, Asked, Call, End, History, Ledger, Letter, Loss, Run, Story};
use super::worker::{BURIED, failed};

/// Times of the forged histories are in ms after this.
const EPOCH: u64 = 1_800_000_000_000;
const LEASE: u64 = 2_000;

fn us(ms: u64) -> u64 {
    (EPOCH + ms) * 1_000
}

fn call(what: Asked, from: u64, to: u64, answer: Answer) -> Call {
    Call { what, from: us(from), to: us(to), answer }
}

/// Granted at this time, and done 50 ms later.
fn run(attempt: u16, published: u64, granted: u64) -> Run {
    Run {
        consumer: format!("worker-{attempt}"),
        id: "a".to_string(),
        published: EPOCH + published,
        attempt,
        fence: us(granted),
        due: EPOCH + granted,
        granted: EPOCH + granted,
        ends: EPOCH + granted + LEASE,
        began: us(granted + 1),
        end: Some((End::Done, us(granted + 50))),
    }
}

/// A job published at 0, accepted at 10 and due at 100, that runs at 100 and is done at 150.
fn history() -> History {
    let accepted = call(Asked::Publish(100), 0, 10, Answer::Done(EPOCH + 100));
    let story = Story {
        queue: "q".to_string(),
        attempts: 3,
        backoff: 500,
        calls: vec![accepted],
        ..Story::default()
    };
    let counters = Counters { published: 1, granted: 1, acked: 1, ..Counters::default() };
    History {
        jobs: [("a".to_string(), story)].into(),
        runs: vec![run(1, 5, 100)],
        ledgers: [("q".to_string(), Ledger { counters, holds: 0, dead: 0 })].into(),
        ..History::default()
    }
}

fn calls(history: &mut History) -> &mut Vec<Call> {
    &mut history.jobs.get_mut("a").expect("the job").calls
}

fn broken(history: &History) -> Vec<Rule> {
    let mut rules: Vec<Rule> =
        Audit::new(history).violations.into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

/// Breaks this rule alone, and no rule once writes between these times may be lost.
#[track_caller]
fn rings(rule: Rule, mut history: History, excused: Option<[u64; 2]>) {
    history.ledgers.clear();
    assert_eq!(broken(&history), [rule], "{:?}", Audit::new(&history));
    let Some([from, to]) = excused else { return };
    history.losses = vec![Loss { from: us(from), to: us(to), why: "a failover".to_string() }];
    let audit = Audit::new(&history);
    assert_eq!(audit.violations, [], "a loss explains it");
    assert_eq!(audit.lost.len() + audit.undone.len(), 1, "and it is listed");
    history.losses = vec![Loss { from: us(60_000), to: us(61_000), why: "a failover".to_string() }];
    assert_eq!(broken(&history), [rule], "another loss does not");
}

#[test]
fn what_is_right_is_silent() {
    let audit = Audit::new(&history());
    assert_eq!((audit.violations, audit.acknowledged, audit.done, audit.cut), (vec![], 1, 1, 0));
}

#[test]
fn a_job_that_vanished() {
    let mut history = history();
    history.runs.clear();
    rings(Rule::NothingVanishes, history.clone(), Some([5, 20]));
    history.runs.push(Run { end: None, ..run(1, 5, 100) });
    rings(Rule::NothingVanishes, history, Some([5, 20]));
}

#[test]
fn a_job_whose_earlier_publish_alone_was_done() {
    let mut history = history();
    calls(&mut history).insert(0, call(Asked::Publish(100), 0, 2, Answer::Unknown));
    (calls(&mut history)[1].from, history.runs[0].published) = (us(4), EPOCH + 1);
    rings(Rule::NothingVanishes, history, Some([5, 20]));
}

#[test]
fn a_job_that_is_held_at_the_end() {
    let mut history = history();
    history.held.push("a".to_string());
    rings(Rule::AllSettles, history, None);
}

#[test]
fn a_run_before_its_due_time() {
    let mut history = history();
    history.runs[0].granted -= 1;
    rings(Rule::NeverEarly, history, None);
}

#[test]
fn a_run_due_before_what_was_answered() {
    let mut history = history();
    history.runs[0] = run(1, 5, 99);
    rings(Rule::NeverEarly, history, None);
}

#[test]
fn a_run_due_as_if_it_had_not_been_rescheduled() {
    let mut history = history();
    calls(&mut history).push(call(Asked::Reschedule(1_000), 20, 30, Answer::Done(EPOCH + 1_025)));
    rings(Rule::NeverEarly, history.clone(), None);
    history.runs[0] = run(1, 5, 1_025);
    assert_eq!(broken(&history), []);
    calls(&mut history).push(call(Asked::Reschedule(100), 40, 50, Answer::Unknown));
    history.runs[0] = run(1, 5, 150);
    assert_eq!(broken(&history), [], "it may have been moved again");
}

#[test]
fn two_leases_at_once() {
    let mut history = history();
    history.runs.insert(0, Run { end: None, ..run(1, 5, 100) });
    history.runs[1] = run(2, 5, 2_099);
    rings(Rule::OneLiveLease, history.clone(), Some([99, 100]));
    history.runs[1] = run(2, 5, 2_100);
    assert_eq!(broken(&history), []);
    calls(&mut history).push(call(Asked::Extend(us(100)), 500, 510, Answer::Done(EPOCH + 2_505)));
    rings(Rule::OneLiveLease, history, Some([505, 520]));
}

#[test]
fn an_attempt_that_came_before_its_backoff() {
    let mut history = history();
    history.jobs.get_mut("a").expect("the job").fails = 1;
    history.runs[0].end = Some((End::Failed, us(150)));
    history.runs.push(run(2, 5, 649));
    rings(Rule::OneLiveLease, history.clone(), Some([99, 101]));
    history.runs[1] = run(2, 5, 650);
    history.ledgers.clear();
    assert_eq!(broken(&history), []);
}

#[test]
fn a_grant_that_two_workers_run() {
    let mut history = history();
    history.runs.push(Run { consumer: "another".to_string(), ..run(1, 5, 100) });
    rings(Rule::FencesDiffer, history, None);
}

#[test]
fn a_cancelled_job_that_ran() {
    let mut history = history();
    calls(&mut history).push(call(Asked::Cancel, 20, 30, Answer::Done(0)));
    rings(Rule::CancelledIsGone, history.clone(), Some([25, 40]));
    calls(&mut history)[1].answer = Answer::Unknown;
    history.ledgers.clear();
    assert_eq!(broken(&history), [], "nobody was promised anything");
}

#[test]
fn an_attempt_too_many() {
    let mut history = history();
    history.runs =
        (1..=4).map(|attempt| Run { end: None, ..run(attempt, 5, 3_000 * u64::from(attempt)) }).collect();
    history.runs[3] = run(3, 5, 12_000);
    rings(Rule::AttemptsAreLimited, history.clone(), Some([8_999, 9_000]));
    history.runs = vec![run(4, 5, 100)];
    rings(Rule::AttemptsAreLimited, history, None);
}

#[test]
fn a_run_after_its_ack() {
    let mut history = history();
    calls(&mut history).push(call(Asked::Settle(us(100), End::Done), 150, 160, Answer::Done(0)));
    history.runs.push(run(2, 5, 2_100));
    rings(Rule::AckIsFinal, history.clone(), Some([155, 170]));
    rings(Rule::AckIsFinal, history.clone(), Some([99, 100]));
    history.runs[1].published = EPOCH + 3_000;
    calls(&mut history).push(call(Asked::Publish(0), 2_999, 3_001, Answer::Unknown));
    history.runs[1] = run(1, 3_000, 3_002);
    history.ledgers.clear();
    assert_eq!(broken(&history), [], "another job of that id");
}

#[test]
fn an_ack_by_a_lease_that_is_over() {
    let mut history = history();
    calls(&mut history).push(call(Asked::Settle(us(100), End::Done), 150, 2_200, Answer::Done(0)));
    history.runs.push(Run { end: None, ..run(2, 5, 2_100) });
    rings(Rule::AckIsFinal, history.clone(), Some([155, 170]));
    history.runs[1].end = Some((End::Done, us(2_250)));
    rings(Rule::AckIsFinal, history.clone(), Some([155, 170]));
    history.runs[1].end = Some((End::Done, us(2_150)));
    let audit = Audit::new(&history);
    assert_eq!((audit.violations, audit.mistaken.len()), (vec![], 1), "the later delivery was done by then");
}

#[test]
fn a_job_that_was_refused_and_ran() {
    let mut history = history();
    calls(&mut history).insert(0, call(Asked::Publish(0), 0, 2, Answer::NotDone));
    calls(&mut history)[1].from = us(4);
    history.runs.push(run(1, 1, 3_000));
    rings(Rule::NothingFromNowhere, history.clone(), None);
    history.runs[1].id = "b".to_string();
    rings(Rule::NothingFromNowhere, history, None);
}

#[test]
fn a_dead_letter_without_a_reason() {
    let letter = |reason: &str, attempt| Letter { published: EPOCH + 5, reason: reason.to_string(), attempt };
    let mut history = history();
    history.ledgers.clear();
    for (reason, attempt) in [("", 3), (BURIED, 1), ("lease ended", 2), (&failed(3), 3), ("unreadable", 1)] {
        history.dead = [("a".to_string(), letter(reason, attempt))].into();
        rings(Rule::DeathHasAReason, history.clone(), None);
    }
    history.dead = [("a".to_string(), letter("lease ended", 3))].into();
    assert_eq!(broken(&history), []);
    let story = history.jobs.get_mut("a").expect("the job");
    (story.fails, story.end) = (999, End::Buried);
    for (reason, attempt) in [(BURIED, 1), (&failed(3), 3)] {
        history.dead = [("a".to_string(), letter(reason, attempt))].into();
        assert_eq!(broken(&history), []);
    }
}

#[test]
fn counters_that_do_not_add_up() {
    let with = |change: fn(&mut Ledger)| {
        let mut history = history();
        change(history.ledgers.get_mut("q").expect("the queue"));
        broken(&history)
    };
    assert_eq!(with(|ledger| ledger.holds = 1), [Rule::CountersAddUp]);
    assert_eq!(
        with(|ledger| (ledger.holds, ledger.dead, ledger.counters.acked) = (1, 1, 0)),
        [Rule::CountersAddUp]
    );
    assert_eq!(
        with(|ledger| (ledger.counters.acked, ledger.counters.cancelled) = (0, 1)),
        [Rule::CountersAddUp]
    );
    assert_eq!(
        with(|ledger| (ledger.counters.published, ledger.counters.acked) = (2, 2)),
        [Rule::CountersAddUp]
    );
    assert_eq!(with(|ledger| ledger.counters.unreadable = 1), [Rule::CountersAddUp]);
}

#[test]
fn an_ack_that_the_counters_do_not_know() {
    let mut history = history();
    calls(&mut history).push(call(Asked::Settle(us(100), End::Done), 150, 160, Answer::Done(0)));
    history.jobs.get_mut("a").expect("the job").ttl = Some(1_000);
    let counters = &mut history.ledgers.get_mut("q").expect("the queue").counters;
    (counters.acked, counters.expired) = (0, 1);
    assert_eq!(broken(&history), [Rule::CountersAddUp]);
    calls(&mut history)[1].to = us(2_200);
    assert_eq!(broken(&history), [], "the lease was over, and the job may have expired");
}

#[test]
fn keys_that_are_left_and_parts_that_misbehave() {
    let mut history = history();
    history.keys.push("{dl:0.0}:q:state".to_string());
    rings(Rule::NothingIsLeft, history.clone(), None);
    history.keys.clear();
    history.oddities.push("the service says 502".to_string());
    rings(Rule::PartsBehave, history, None);
}
