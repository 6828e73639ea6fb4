//! Redis at its `maxmemory`.

use bytes::Bytes;
use delayline_core::{Answer, Command, Config, Due, Fault, NewJob, Refusal, Reply};

use crate::bed::{Bed, queue};

fn full(command: &Command) -> Option<Reply> {
    let grows = matches!(command, Command::Publish { .. } | Command::Open { .. });
    grows.then_some(Reply::Refused(Refusal::OutOfMemory))
}

fn job(token: u64, wait_for_memory: bool) -> NewJob {
    let id = format!("job-{token}").parse().expect("an id");
    NewJob {
        wait_for_memory,
        due: Due::After { ms: 60_000 },
        ..NewJob::new(queue("orders"), id, Bytes::new())
    }
}

#[test]
fn a_publish_is_refused_at_once_unless_it_asked_to_wait() {
    let mut bed = Bed::new([Config::default()]);
    bed.instead = Box::new(full);
    for token in 0..20 {
        bed.publish_job(0, token, job(token, token % 2 == 1));
    }
    bed.settle();
    let out = Some(Err(Fault::NotSent(Some(Refusal::OutOfMemory))));
    let answer = |bed: &Bed, token| bed.answer(0, token).map(|(_, answer)| answer);
    for token in 0..20 {
        let expected = if token % 2 == 1 { None } else { out.clone() };
        assert_eq!(answer(&bed, token), expected, "job {token}");
    }
    // Behind what waits, at the next attempt.
    bed.publish_job(0, 20, job(20, false));
    bed.pass(2_000);
    assert_eq!(answer(&bed, 20), out);
    bed.instead = Box::new(|_| None);
    bed.pass(3_000);
    for token in (1..20).step_by(2) {
        assert!(matches!(answer(&bed, token), Some(Ok(Answer::Published { .. }))), "job {token}");
    }
    for token in (0..20).step_by(2) {
        bed.publish_job(0, 100 + token, job(token, false));
    }
    bed.pass(1_000);
    for token in (0..20).step_by(2) {
        let again = answer(&bed, 100 + token);
        assert!(matches!(again, Some(Ok(Answer::Published { .. }))), "job {token} was not kept: {again:?}");
    }
}

#[test]
fn who_waited_in_vain_is_told_why() {
    let mut bed = Bed::new([Config::default()]);
    bed.instead = Box::new(full);
    bed.publish_job(0, 1, NewJob { timeout_ms: 5_000, ..job(1, true) });
    let began = bed.now;
    bed.pass(60_000);
    let (at, answer) = bed.answer(0, 1).expect("an answer");
    assert_eq!(answer, Err(Fault::NotSent(Some(Refusal::OutOfMemory))));
    assert_eq!(at.since(began), 5_000);
}

/// The first transmission may still arrive: nobody can say that it was refused.
#[test]
fn what_may_have_been_accepted_before_is_not_called_refused() {
    let mut bed = Bed::new([Config::default()]);
    bed.publish_job(0, 1, NewJob { timeout_ms: 20_000, ..job(1, false) });
    bed.silent = true;
    bed.settle();
    (bed.silent, bed.instead) = (false, Box::new(full));
    bed.pass(10_000);
    assert_eq!(bed.answer(0, 1), None);
    bed.pass(20_000);
    assert_eq!(bed.answer(0, 1).map(|(_, answer)| answer), Some(Err(Fault::Unknown)));
}
