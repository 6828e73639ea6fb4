//! What becomes of grants: handed out, too late, or too dear.

use delayline_core::{
    Answer, Command, Config, Credit, Engine, Event, Fence, Held, Identity, Millis, Reply, Settlement,
    Subscription, Take, Ticket, Token, UnixMicros, UnixMs, Verdict,
};

use crate::grant::{START_MS, grant};

fn granted(names: &[&str], lease_ms: u64) -> Reply {
    Reply::Granted {
        time: UnixMicros(START_MS * 1_000),
        fence: Fence(7),
        lease_end: UnixMs(START_MS + lease_ms),
        backoff: None,
        jobs: names.iter().map(|name| grant(name)).collect(),
        next: None,
        more: false,
        open: true,
    }
}

fn reserve(engine: &mut Engine, credit: Credit) -> (Ticket, u16) {
    let transmit = engine.poll_transmit(credit).expect("a reserve");
    let Command::Reserve { count, .. } = transmit.commands[0] else { panic!("{:?}", transmit.commands) };
    (transmit.ticket, count)
}

fn worker(slots: u16) -> Engine {
    let subscriptions = vec![Subscription { queue: "orders".parse().unwrap(), weight: 1, max: slots }];
    let config = Config { subscriptions, slots, ..Config::default() };
    Engine::new(config, Identity(7), Millis(0)).unwrap()
}

fn released(engine: &mut Engine, credit: Credit) -> usize {
    let mut released = 0;
    while let Some(transmit) = engine.poll_transmit(credit) {
        for command in transmit.commands {
            if let Command::Settle { leases, .. } = command {
                let is_release = |(_, _, how): &&(_, _, _)| matches!(how, Settlement::Release { .. });
                released += leases.iter().filter(is_release).count();
            }
        }
    }
    released
}

#[test]
fn a_take_hands_out_nothing_whose_lease_has_ended() {
    let mut engine = Engine::new(Config::default(), Identity(7), Millis(0)).unwrap();
    let queues = vec!["orders".parse().unwrap()];
    let take = Take { queues, count: 2, lease_ms: 1_000, wait_ms: 10_000 };
    engine.take(Millis(0), Token(1), take).unwrap();
    let (ticket, _) = reserve(&mut engine, Credit::UNLIMITED);
    engine.handle_replies(Millis(1_500), ticket, [granted(&["a", "b"], 1_000)]);
    assert_eq!(engine.poll_event(), None, "the take goes on waiting");
    assert_eq!(released(&mut engine, Credit::UNLIMITED), 2);
}

#[test]
fn a_take_hands_out_what_comes_in_time() {
    let mut engine = Engine::new(Config::default(), Identity(7), Millis(0)).unwrap();
    let queues = vec!["orders".parse().unwrap()];
    let take = Take { queues, count: 2, lease_ms: 1_000, wait_ms: 10_000 };
    engine.take(Millis(0), Token(1), take).unwrap();
    let (ticket, _) = reserve(&mut engine, Credit::UNLIMITED);
    engine.handle_replies(Millis(500), ticket, [granted(&["a", "b"], 1_000)]);
    let Some(Event::Answered { answer: Ok(Answer::Taken(jobs)), .. }) = engine.poll_event() else {
        panic!("no jobs")
    };
    assert_eq!(jobs.len(), 2);
}

#[test]
fn what_resends_have_made_too_dear_is_released() {
    let mut engine = worker(10);
    let (ticket, count) = reserve(&mut engine, Credit { trips: 8, per_job: 1 });
    assert_eq!(count, 5, "of 8 trips one goes to the reserve, two to the verdicts");
    assert!(engine.poll_transmit(Credit { trips: 3, per_job: 1 }).is_none());
    engine.handle_replies(Millis(1), ticket, [granted(&["a", "b", "c", "d", "e"], 30_000)]);
    let runs: Vec<Event> = std::iter::from_fn(|| engine.poll_event()).collect();
    assert_eq!(runs.len(), 1, "with 3 trips left, two are for the verdicts");
    assert_eq!(engine.held(), 1);
}

#[test]
fn verdicts_wait_for_each_other_where_round_trips_are_counted() {
    let mut engine = worker(3);
    let (ticket, count) = reserve(&mut engine, Credit { trips: 6, per_job: 1 });
    assert_eq!(count, 3);
    engine.handle_replies(Millis(1), ticket, [granted(&["a", "b", "c"], 30_000)]);
    let held: Vec<Held> = std::iter::from_fn(|| engine.poll_event())
        .filter_map(|event| if let Event::Run(job) = event { job.held } else { None })
        .collect();
    let credit = Credit { trips: 2, per_job: 1 };
    for (done, held) in held.into_iter().enumerate() {
        assert!(engine.poll_transmit(credit).is_none(), "{done} verdicts wait");
        engine.settle(Millis(2), held, Verdict::Ack);
    }
    let transmit = engine.poll_transmit(credit).expect("the verdicts");
    let Command::Settle { leases, .. } = &transmit.commands[0] else { panic!("{:?}", transmit.commands) };
    assert_eq!(leases.len(), 3);
}
