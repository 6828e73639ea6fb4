//! The queue over REST: `delayline rest` in front of a real server, spoken to by the codec of the edge.

use std::future::Future;

use bytes::Bytes;
use delayline_core::wire::Form;
use delayline_core::{
    Answer, Command, Config, Engine, Identity, JobId, Keyspace, Millis, NewJob, Prefix, QueueName, Refusal,
    Reply, Shards, Take, Token, Transmit, UnixMicros, Verdict,
};
use delayline_embedded::Damage;
use delayline_tests::edge::Rest;
use delayline_tests::{Dump, RedisServer, RedisStore, block_on, report, seeds};
use delayline_tokio::Client;
use delayline_wasm::rest::{Landed, carried};
use delayline_wasm::{World as Around, calls};

use crate::conformance::sequence;
use crate::twin::{InMemory, Twin, on_server};
use crate::world::World;

const SEQUENCES: u64 = 100;

/// The same as a twin, of records that are armoured on their way.
struct Armoured<T>(T);

/// A server that is told through the endpoint.
struct ByRest<'a> {
    endpoint: &'a Rest,
    keys: Keyspace,
    store: RedisStore,
}

impl<T: Twin> Twin for Armoured<T> {
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply {
        let mut command = command.clone();
        if let Command::Publish { jobs, .. } = &mut command {
            for job in jobs {
                job.record = carried(&job.record).into();
            }
        }
        self.0.execute(now, &command)
    }

    fn lose(&mut self, queue: &QueueName, id: &JobId) {
        self.0.lose(queue, id);
    }

    fn damage(&mut self, queue: &QueueName, damage: &Damage) {
        self.0.damage(queue, damage);
    }

    fn heard(&mut self) -> Vec<(String, String)> {
        self.0.heard()
    }

    fn dump(&mut self) -> Dump {
        self.0.dump()
    }
}

impl Twin for ByRest<'_> {
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply {
        for form in [Form::Sha, Form::Source] {
            match self.endpoint.send(&self.keys, &[(command.clone(), form)], Some(now)) {
                Landed::Replies(mut replies) if replies.len() == 1 => match replies.remove(0) {
                    Reply::Refused(Refusal::NoScript) => {}
                    reply => return reply,
                },
                other => panic!("{other:?}"),
            }
        }
        panic!("the script is not known though it was sent")
    }

    fn lose(&mut self, queue: &QueueName, id: &JobId) {
        Twin::lose(&mut self.store, queue, id);
    }

    fn damage(&mut self, queue: &QueueName, damage: &Damage) {
        self.store.damage(queue, damage);
    }

    fn heard(&mut self) -> Vec<(String, String)> {
        self.store.heard()
    }

    fn dump(&mut self) -> Dump {
        self.store.dump()
    }
}

#[test]
fn the_store_in_memory_behaves_as_a_server_behind_rest() {
    let server = RedisServer::plain();
    let endpoint = Rest::start(env!("CARGO_BIN_EXE_service"), &server);
    let seeds = seeds::only().map_or(seeds::base()..seeds::base() + SEQUENCES, |seed| seed..seed + 1);
    for seed in seeds {
        let mut world = World::new(seed);
        let mut left = Armoured(InMemory::new(&world));
        let keys = Keyspace::new(&Prefix::default(), world.shards);
        let mut right = Armoured(ByRest { endpoint: &endpoint, keys, store: on_server(&server, &world) });
        sequence(&mut world, &mut left, &mut right).unwrap_or_else(|difference| {
            panic!("memory and a server behind REST differ: DELAYLINE_SEED={seed} cargo test -p delayline-tests --test all rest\n{difference}")
        });
    }
    report(&format!("conformance through delayline rest: {SEQUENCES} sequences of 200 steps"));
}

/// An engine's world: the endpoint, and nothing else.
struct Edge<'a> {
    endpoint: &'a Rest,
    keys: Keyspace,
    began: std::time::Instant,
}

impl<'e> Around for Edge<'e> {
    fn now(&self) -> Millis {
        Millis(u64::try_from(self.began.elapsed().as_millis()).expect("a short test"))
    }

    fn send<'a>(&'a self, transmit: Transmit<'_>) -> impl Future<Output = Landed> + use<'a, 'e> {
        let commands: Vec<_> =
            transmit.commands.iter().cloned().zip(transmit.forms.iter().copied()).collect();
        std::future::ready(self.endpoint.send(&self.keys, &commands, None))
    }

    async fn deliver(&self, _: delayline_core::Job) -> Verdict {
        Verdict::Release
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> {
        tokio::time::sleep(std::time::Duration::from_millis(ms))
    }
}

#[test]
fn all_bytes_survive_from_the_edge_to_native_and_back() {
    let server = RedisServer::plain();
    let endpoint = Rest::start(env!("CARGO_BIN_EXE_service"), &server);
    let keys = Keyspace::new(&Prefix::default(), Shards::default());
    let world = Edge { endpoint: &endpoint, keys, began: std::time::Instant::now() };
    let bytes: Bytes = (0..=255).cycle().take(5_000).collect::<Vec<u8>>().into();
    let queue: QueueName = "orders".parse().expect("a name");
    block_on(async {
        let mut engine = Engine::new(Config::default(), Identity(7), world.now()).expect("a config");
        let job = NewJob::new(queue.clone(), "from-the-edge".parse().expect("an id"), bytes.clone());
        engine.publish(world.now(), Token(1), job).expect("room");
        let answers = calls::answers(&world, &mut engine, 1).await;
        assert!(matches!(answers[..], [(Token(1), Ok(Answer::Published { .. }))]), "{answers:?}");

        let client = Client::connect(&server.url()).await.expect("a client");
        let native = client.bytes(&queue).expect("a name");
        let taken = native.take().count(10).await.expect("an answer");
        assert_eq!((taken.len(), &taken[0].body), (1, &bytes));
        client.settle(taken[0].lease.clone(), Verdict::Ack).await.expect("an answer");
        native.publish_bytes(bytes.clone()).id("from-native").await.expect("published");
        client.close().await;

        let want = Take { queues: vec![queue], count: 10, lease_ms: 30_000, wait_ms: 0 };
        engine.take(world.now(), Token(2), want).expect("room");
        let mut answers = calls::answers(&world, &mut engine, 1).await;
        let Some((_, Ok(Answer::Taken(jobs)))) = answers.pop() else { panic!("{answers:?}") };
        assert_eq!((jobs.len(), jobs[0].lease.id.as_str(), &jobs[0].body), (1, "from-native", &bytes));
    });
}
