use delayline_core::{Answer, Command, Config, Fault, Invalid, Pumping, Refusal, Reply, Take, Token};

use crate::bed::{Bed, away, queue};

fn taker() -> Config {
    Config { pump: Pumping::WhileTaking, ..Config::default() }
}

fn of(names: &[&str], wait_ms: u64) -> Take {
    Take { queues: names.iter().map(|name| queue(name)).collect(), count: 1, lease_ms: 5_000, wait_ms }
}

fn take(bed: &mut Bed, token: u64, want: Take) {
    let now = bed.now;
    bed.engine(0).take(now, Token(token), want).expect("room");
}

fn is_not_sent(answer: &Result<Answer, Fault>, why: Option<Refusal>) -> bool {
    *answer == Err(Fault::NotSent(why))
}

#[test]
fn while_redis_is_away_each_take_says_so_whenever_it_began() {
    let mut bed = Bed::new([taker()]);
    bed.pass(1_000);
    bed.instead = away();
    for token in 0..10 {
        take(&mut bed, token, of(&["orders"], 2_000));
        bed.pass(token * 300);
    }
    take(&mut bed, 10, of(&["orders", "mails"], 2_000));
    bed.pass(2_000);
    assert_eq!(bed.answer(0, 10), None, "a part of the first millisecond was over");
    bed.pass(1);
    for token in 0..=10 {
        let (_, answer) = bed.answer(0, token).expect("an answer");
        assert!(is_not_sent(&answer, Some(Refusal::NotConnected)), "take {token}: {answer:?}");
    }
}

/// Redis takes what it is sent, and says nothing.
#[test]
fn while_redis_is_silent_each_take_says_so() {
    let mut bed = Bed::new([taker()]);
    bed.silent = true;
    for token in 0..5 {
        take(&mut bed, token, of(&["orders"], 3_000));
        bed.pass(1_000);
    }
    bed.pass(3_000);
    for token in 0..5 {
        let (_, answer) = bed.answer(0, token).expect("an answer");
        assert!(is_not_sent(&answer, None), "take {token}: {answer:?}");
    }
}

#[test]
fn a_take_of_which_one_queue_answered_brings_nothing() {
    let mut bed = Bed::new([taker()]);
    bed.instead = Box::new(|command| match command {
        Command::Reserve { queue, .. } if queue.as_str() == "mails" => {
            Some(Reply::Refused(Refusal::Unavailable))
        }
        _ => None,
    });
    take(&mut bed, 1, of(&["orders", "mails"], 2_000));
    take(&mut bed, 2, of(&["mails"], 2_000));
    bed.pass(2_001);
    assert_eq!(bed.answer(0, 1).map(|(_, answer)| answer), Some(Ok(Answer::Taken(Vec::new()))));
    let (_, answer) = bed.answer(0, 2).expect("an answer");
    assert!(is_not_sent(&answer, Some(Refusal::Unavailable)), "{answer:?}");
}

#[test]
fn a_take_of_a_queue_that_answers_nonsense_says_what_it_was() {
    for wait_ms in [0, 5_000] {
        let mut bed = Bed::new([taker()]);
        bed.instead = Box::new(|command| {
            let broken = Reply::Broken("WRONGTYPE".to_owned());
            matches!(command, Command::Reserve { .. }).then_some(broken)
        });
        take(&mut bed, 1, of(&["orders"], wait_ms));
        bed.pass(20_000);
        let (_, answer) = bed.answer(0, 1).expect("an answer");
        let Err(Fault::Broken(why)) = answer else { panic!("{wait_ms}: {answer:?}") };
        let parts = ["WRONGTYPE", "queue orders", "delayline doctor --repair"];
        assert!(parts.iter().all(|part| why.contains(part)), "{wait_ms}: {why}");
    }
}

#[test]
fn a_take_that_does_not_wait_is_answered_though_redis_is_not() {
    for silent in [false, true] {
        let mut bed = Bed::new([taker()]);
        (bed.silent, bed.instead) = (silent, away());
        let began = bed.now;
        take(&mut bed, 1, of(&["orders"], 0));
        bed.pass(60_000);
        let (at, answer) = bed.answer(0, 1).expect("an answer");
        assert!(is_not_sent(&answer, (!silent).then_some(Refusal::NotConnected)), "{answer:?}");
        assert_eq!(at.since(began), 2 * Config::default().flight_ms);
    }
}

#[test]
fn a_take_beyond_a_limit_is_refused_and_nothing_is_sent() {
    let mut bed = Bed::new([taker()]);
    let good = of(&["orders"], 0);
    let wants = [
        Take { queues: Vec::new(), ..good.clone() },
        Take { count: 0, ..good.clone() },
        Take { count: 257, ..good.clone() },
        Take { lease_ms: 999, ..good.clone() },
        Take { lease_ms: 86_400_001, ..good.clone() },
        Take { wait_ms: 300_001, ..good },
    ];
    for (want, token) in wants.into_iter().zip(1..) {
        take(&mut bed, token, want.clone());
        bed.settle();
        let answer = bed.answer(0, token).map(|(_, answer)| answer);
        assert!(matches!(answer, Some(Err(Fault::Invalid(_)))), "{want:?}: {answer:?}");
    }
    assert_eq!(bed.nodes[0].trips, []);
    assert_eq!(bed.answer(0, 1).map(|(_, answer)| answer), Some(Err(Fault::Invalid(Invalid::NoQueue))));
}
