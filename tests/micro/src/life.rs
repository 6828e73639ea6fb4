use std::collections::VecDeque;

use bytes::Bytes;
use delayline_core::{
    Compression, Config, Credit, Engine, Event, Identity, JobId, Millis, NewJob, Pumping, QueueName, Reply,
    Shards, Subscription, Token, UnixMicros, Verdict, Wakeup,
};
use delayline_embedded::Store;

/// The replies of round trips, in order.
pub type Script = VecDeque<Vec<Reply>>;

/// An engine through which jobs live: published, granted, acknowledged. What the store answers is [learnt](Life::learn) once
/// from the store in memory and then played back, so that the engine alone is at work.
pub struct Life {
    engine: Engine,
    now: Millis,
    queue: QueueName,
    batch: usize,
    lived: usize,
    body: Bytes,
}

impl Life {
    /// An engine that has done nothing yet, and publishes so many jobs at a time.
    ///
    /// # Panics
    /// If the engine refuses its config.
    pub fn new(batch: usize) -> Life {
        let queue: QueueName = "orders".parse().expect("a name");
        let config = Config {
            subscriptions: vec![Subscription { queue: queue.clone(), weight: 1, max: 100 }],
            slots: 100,
            pump: Pumping::Always,
            compression: Compression::Off,
            ..Config::default()
        };
        let mut engine = Engine::new(config, Identity(7), Millis(0)).expect("a config");
        engine.handle_wakeup(Millis(0), Wakeup::Subscribed);
        let body = crate::record(100).body;
        Life { engine, now: Millis(0), queue, batch, lived: 0, body }
    }

    /// What a store answers to the first so many batches of such an engine.
    pub fn learn(batch: usize, batches: usize) -> Script {
        let (mut life, mut store, mut script) =
            (Life::new(batch), Store::new(Shards::default()), Script::new());
        life.run(batches, |now, engine| {
            let time = UnixMicros(1_763_700_000_000_000 + now.0 * 1_000);
            let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) else { return false };
            let ticket = transmit.ticket;
            let replies: Vec<Reply> =
                transmit.commands.iter().map(|command| store.execute(time, command)).collect();
            script.push_back(replies.clone());
            engine.handle_replies(now, ticket, replies);
            true
        });
        script
    }

    /// Plays back what was learnt, for so many batches.
    ///
    /// # Panics
    /// If the engine asks for more than was learnt.
    pub fn play(&mut self, batches: usize, script: &mut Script) {
        self.run(batches, |now, engine| {
            let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) else { return false };
            let ticket = transmit.ticket;
            engine.handle_replies(now, ticket, script.pop_front().expect("a reply that was learnt"));
            true
        });
    }

    /// Lets so many batches live, one after the other; `trip` makes a round trip if there is one to make.
    fn run(&mut self, batches: usize, mut trip: impl FnMut(Millis, &mut Engine) -> bool) {
        for _ in 0..batches {
            self.publish();
            self.drive(&mut trip);
            self.engine.handle_wakeup(self.now, Wakeup::Ready(self.queue.clone()));
            self.drive(&mut trip);
            self.now = self.now + 1;
            self.engine.handle_timeout(self.now);
            self.drive(&mut trip);
            assert_eq!(self.lived % self.batch, 0, "a job of the batch did not live to its end");
            assert!(self.lived > 0, "no job lived");
        }
    }

    fn publish(&mut self) {
        for number in 0..self.batch {
            let id: JobId = format!("job-{:010}", self.lived + number).parse().expect("an id");
            let job = NewJob::new(self.queue.clone(), id, self.body.clone());
            self.engine.publish(self.now, Token(number as u64), job).expect("room");
        }
    }

    fn drive(&mut self, trip: &mut impl FnMut(Millis, &mut Engine) -> bool) {
        let mut moved = true;
        while moved {
            moved = trip(self.now, &mut self.engine);
            while let Some(event) = self.engine.poll_event() {
                moved = true;
                if let Event::Run(job) = event {
                    self.lived += 1;
                    self.engine.settle(self.now, job.held.expect("a managed job"), Verdict::Ack);
                }
            }
        }
    }
}
