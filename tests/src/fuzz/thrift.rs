use delayline_core::{
    Command, Config, Credit, Engine, Identity, Millis, NewJob, Pumping, Reply, Stats, Token, Verdict,
};

use super::engine::{QUEUES, job, verdict};
use super::input::Input;
use super::rig::Rig;

const INPUTS: usize = 200;
const PUBLISHER: Identity = Identity(0xfeed);

/// An engine that must count its round trips, where every answer arrives at once: when all that it runs has ended, no
/// lease is left to run out.
///
/// # Panics
/// If one is.
pub(super) fn thrift(rig: &mut Rig, input: &mut Input<'_>) {
    let config = Config { pump: Pumping::Never, shards: rig.engine.config().shards, ..Config::default() };
    let mut publisher = Engine::new(config, PUBLISHER, Millis(0)).expect("a config");
    answer(rig);
    for _ in 0..INPUTS {
        if input.is_empty() {
            break;
        }
        step(rig, &mut publisher, input);
        answer(rig);
    }
    while let Some(held) = rig.running.first().copied() {
        rig.settle(held, Verdict::Ack);
        answer(rig);
    }
    assert!(rig.untold().is_empty(), "{:?} ended, with {} round trips left", rig.untold(), rig.credit.trips);
    let leased: u64 = QUEUES.iter().map(|queue| stats(rig, queue).leased).sum();
    assert!(
        leased == 0 || rig.abandoned > 0,
        "{leased} leases are left, and {} round trips",
        rig.credit.trips
    );
}

fn step(rig: &mut Rig, publisher: &mut Engine, input: &mut Input<'_>) {
    match input.below(8) {
        0..=2 => publish(rig, publisher, job(input)),
        3 | 4 => {
            if let Some(held) = rig.running.get(usize::from(input.below(8))).copied() {
                rig.settle(held, verdict(input));
            }
        }
        5 => rig.publish(job(input)),
        6 if input.once_in(16) => rig.engine.drain(rig.now),
        _ => {
            rig.now = rig.now + input.pick(&[0, 1, 10, 400, 1_000, 6_000, 31_000, 600_000]);
            rig.engine.handle_timeout(rig.now);
        }
    }
}

/// Another engine publishes the job.
fn publish(rig: &mut Rig, publisher: &mut Engine, job: NewJob) {
    if publisher.publish(rig.now, Token(0), job).is_err() {
        return;
    }
    while let Some(transmit) = publisher.poll_transmit(Credit::UNLIMITED) {
        let (ticket, commands) = (transmit.ticket, transmit.commands.to_vec());
        let replies = rig.honest(&commands);
        publisher.handle_replies(rig.now, ticket, replies);
    }
    while publisher.poll_event().is_some() {}
}

fn answer(rig: &mut Rig) {
    rig.poll_dry();
    while !rig.air.is_empty() {
        let (ticket, commands) = rig.air.remove(0);
        let replies = rig.honest(&commands);
        rig.replies(ticket, &commands, replies);
        rig.poll_dry();
    }
}

fn stats(rig: &mut Rig, queue: &str) -> Stats {
    let stats = Command::Stats { queue: queue.parse().expect("a name"), hours: 0 };
    match &*rig.honest(&[stats]) {
        [Reply::Counted { stats, .. }] => stats.clone(),
        other => panic!("{other:?}"),
    }
}
