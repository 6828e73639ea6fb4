//! What jobs are, and how they are written and read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use delayline_tokio::{
    BoxError, Bytes, CancelOutcome, Client, Codec, Context, Error, JobId, Place, Reason, Verdict, Worker,
    blocking,
};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

on_both_stores! {
    a_job_is_written_and_read_as_its_type
    a_codec_says_what_it_writes
    what_cannot_be_written_is_not_sent
    what_cannot_be_read_says_what_it_was_to_be
    thousands_are_answered_in_their_order_and_a_bad_one_fails_alone
    a_slow_stream_is_published_as_it_comes
    an_endless_stream_is_pulled_as_far_as_it_is_answered
    threads_without_a_runtime_publish_and_ask
    a_blocking_handler_publishes_and_asks
    an_upsert_takes_the_place_of_a_waiting_job
    an_upsert_leaves_a_job_that_is_run_or_dead
    ids_are_any_text_that_is_one
}

const HOUR: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Mail {
    to: String,
    copies: BTreeMap<String, u8>,
}

fn mail(to: &str) -> Mail {
    Mail { to: to.to_owned(), copies: BTreeMap::from([("bob".to_owned(), 2)]) }
}

struct Postcard;

impl<T: Serialize + for<'a> Deserialize<'a>> Codec<T> for Postcard {
    fn content_type(&self) -> Option<&str> {
        Some("application/postcard")
    }

    fn encode(&self, job: &T) -> Result<Bytes, BoxError> {
        Ok(postcard::to_allocvec(job)?.into())
    }

    fn decode(&self, body: &Bytes, _: Option<&str>) -> Result<T, BoxError> {
        Ok(postcard::from_bytes(body)?)
    }
}

async fn a_job_is_written_and_read_as_its_type(client: Client) {
    let mails = client.queue::<Mail>("mails").unwrap();
    let id = mails.publish(&mail("ann")).await.unwrap().id;
    let inspected = mails.inspect(&id).await.unwrap().unwrap();
    assert_eq!(mails.decode_inspected(&inspected), Ok(mail("ann")));
    let [taken] = &mails.take().await.unwrap()[..] else { panic!() };
    assert_eq!(taken.content_type.as_deref(), Some("application/json"));
    assert_eq!(&taken.body[..], br#"{"to":"ann","copies":{"bob":2}}"#);
    assert_eq!(mails.decode(taken), Ok(mail("ann")));
}

async fn a_codec_says_what_it_writes(client: Client) {
    let mails = client.queue_with::<Mail>("mails", Postcard).unwrap();
    mails.publish(&mail("ann")).await.unwrap();
    mails.publish(&mail("bob")).content_type("application/vnd.mail").await.unwrap();
    let taken = mails.take().count(2).await.unwrap();
    let types: Vec<_> = taken.iter().map(|job| job.content_type.as_deref().unwrap()).collect();
    assert_eq!(types, ["application/postcard", "application/vnd.mail"]);
    assert_eq!(mails.decode(&taken[0]), Ok(mail("ann")));
    let plain = client.bytes("plain").unwrap();
    plain.publish_bytes("x").await.unwrap();
    assert_eq!(plain.take().await.unwrap()[0].content_type, None);
}

async fn what_cannot_be_written_is_not_sent(client: Client) {
    let pairs = client.queue::<BTreeMap<(u8, u8), u8>>("pairs").unwrap();
    let refused = pairs.publish(&BTreeMap::from([((1, 2), 3)])).await.unwrap_err();
    let said = refused.to_string();
    assert!(matches!(&refused, Error::Encode { queue, .. } if queue == pairs.name()), "{refused:?}");
    assert_eq!(said, "a job for queue pairs cannot be written: key must be a string");
    pairs.publish(&BTreeMap::new()).await.unwrap();
    assert_eq!(pairs.stats(0).await.unwrap().counters.published, 1);
}

async fn what_cannot_be_read_says_what_it_was_to_be(client: Client) {
    let mails = client.queue::<Mail>("mails").unwrap();
    let id = client.bytes("mails").unwrap().publish_bytes("{\"to\":1").await.unwrap().id;
    let inspected = mails.inspect(&id).await.unwrap().unwrap();
    let [taken] = &mails.take().await.unwrap()[..] else { panic!() };
    for read in [mails.decode(taken), mails.decode_inspected(&inspected)] {
        let unread = read.unwrap_err();
        let Error::Decode { queue, id: which, expected, why } = &unread else { panic!("{unread:?}") };
        assert_eq!((queue, which), (mails.name(), &id));
        assert!(expected.ends_with("Mail") && why.contains("invalid type: integer"), "{unread}");
    }
}

async fn thousands_are_answered_in_their_order_and_a_bad_one_fails_alone(client: Client) {
    let numbers = client.queue::<u32>("numbers").unwrap();
    let pairs = client.queue::<BTreeMap<(u8, u8), u8>>("numbers").unwrap();
    let jobs = (0..7_000u32).map(|i| match i {
        3_210 => pairs.publish(&BTreeMap::from([((1, 2), 3)])),
        4_321 => numbers.publish(&i).id("no id"),
        i => numbers.publish(&i).id(format!("job-{i}")).delay(HOUR),
    });
    let outcomes = numbers.publish_all(jobs).await;
    assert_eq!(outcomes.len(), 7_000);
    for (i, outcome) in outcomes.into_iter().enumerate() {
        match (i, outcome) {
            (3_210, outcome) => assert!(matches!(outcome, Err(Error::Encode { .. })), "{outcome:?}"),
            (4_321, outcome) => assert!(matches!(outcome, Err(Error::Name(_))), "{outcome:?}"),
            (i, outcome) => assert_eq!(outcome.unwrap().id.as_str(), format!("job-{i}")),
        }
    }
    assert_eq!(numbers.stats(0).await.unwrap().delayed, 6_998);
}

async fn a_slow_stream_is_published_as_it_comes(client: Client) {
    let numbers = client.queue::<u32>("numbers").unwrap();
    let (send, receive) = mpsc::unbounded_channel();
    let jobs = stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive)));
    let mut outcomes = numbers.publish_stream(jobs.boxed());
    for i in 0..100 {
        send.send(numbers.publish(&i).id(format!("job-{i}"))).unwrap();
        let outcome = tokio::time::timeout(Duration::from_secs(20), outcomes.next()).await;
        assert_eq!(
            outcome.expect("an answer before the next job").unwrap().unwrap().id.as_str(),
            format!("job-{i}")
        );
    }
    drop(send);
    assert!(outcomes.next().await.is_none());
}

async fn an_endless_stream_is_pulled_as_far_as_it_is_answered(client: Client) {
    let numbers = client.queue::<usize>("numbers").unwrap();
    let pulled = Arc::new(AtomicUsize::new(0));
    let (queue, counted) = (numbers.clone(), pulled.clone());
    let jobs = stream::repeat_with(move || {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        queue.publish(&number).id(format!("job-{number}")).delay(HOUR)
    });
    let mut outcomes = numbers.publish_stream(jobs);
    let mut most = 0;
    for answered in 0..12_000 {
        let published = outcomes.next().await.unwrap().unwrap();
        assert_eq!(published.id.as_str(), format!("job-{answered}"));
        most = most.max(pulled.load(Ordering::SeqCst) - answered);
    }
    assert!(most <= 5_000, "{most} jobs ahead of the answers");
}

async fn threads_without_a_runtime_publish_and_ask(client: Client) {
    let address = client.address().to_owned();
    let (tell, told) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        let client = Client::connect_blocking(&address).unwrap();
        let numbers = client.queue::<u32>("numbers").unwrap();
        let id = numbers.publish(&1).delay(HOUR).blocking().unwrap().id;
        let refused = numbers.publish(&2).id("no id").blocking();
        assert!(matches!(refused, Err(Error::Name(_))), "{refused:?}");
        let all = client.block_on(numbers.publish_all((0..1_000).map(|i| numbers.publish(&i)))).unwrap();
        assert!(all.into_iter().all(|outcome| outcome.is_ok()));
        assert_eq!(client.block_on(numbers.take().count(256)).unwrap().unwrap().len(), 256);
        let outcome = client.block_on(numbers.cancel(&id)).unwrap();
        client.block_on(client.clone().close()).unwrap();
        assert_eq!(numbers.publish(&3).blocking(), Err(Error::Closed));
        tell.send(outcome).unwrap();
    });
    assert_eq!(told.await.unwrap(), Ok(CancelOutcome::Cancelled));
    thread.join().unwrap();
}

async fn a_blocking_handler_publishes_and_asks(client: Client) {
    let (asks, answers) = (client.queue::<u32>("asks").unwrap(), client.queue::<u32>("answers").unwrap());
    asks.publish(&17).await.unwrap();
    let (own, to) = (client.clone(), answers.clone());
    let answer = move |job: delayline_tokio::Job<u32>| -> Result<(), Error> {
        to.publish(&(job.0 + 1)).id("answer").blocking()?;
        let published = own.block_on(to.inspect("answer"))??;
        assert_eq!(published.unwrap().place, Place::Ready);
        Ok(())
    };
    let running = tokio::spawn(Worker::new(&client).queue(&asks, blocking(answer)).run());
    let [taken] = &answers.take().wait(Duration::from_secs(20)).await.unwrap()[..] else { panic!() };
    assert_eq!(answers.decode(taken), Ok(18));
    client.close().await;
    running.await.unwrap().unwrap();
}

async fn an_upsert_takes_the_place_of_a_waiting_job(client: Client) {
    let mails = client.queue::<Mail>("mails").unwrap();
    let first = mails.upsert("digest", &mail("ann")).delay(HOUR).await.unwrap();
    assert!(!first.replaced && !first.duplicate);
    let second = mails.upsert("digest", &mail("bob")).header("why", "late").await.unwrap();
    assert!(second.replaced && !second.duplicate && second.due < first.due);
    let [taken] = &mails.take().await.unwrap()[..] else { panic!() };
    assert_eq!((mails.decode(taken), taken.headers.len()), (Ok(mail("bob")), 1));
    let counters = mails.stats(0).await.unwrap().counters;
    assert_eq!((counters.published, counters.granted), (2, 1));
}

async fn an_upsert_leaves_a_job_that_is_run_or_dead(client: Client) {
    let mails = client.queue::<Mail>("mails").unwrap();
    mails.upsert("digest", &mail("ann")).await.unwrap();
    let [taken] = &mails.take().await.unwrap()[..] else { panic!() };
    assert!(mails.upsert("digest", &mail("bob")).await.unwrap().duplicate);
    client.settle(taken.lease.clone(), Verdict::Bury { reason: Reason::new("no") }).await.unwrap();
    let refused = mails.upsert("digest", &mail("bob")).await.unwrap();
    assert!(refused.duplicate && !refused.replaced && refused.due.is_none());
    let dead = mails.inspect("digest").await.unwrap().unwrap();
    assert_eq!((dead.place, mails.decode_inspected(&dead)), (Place::Dead, Ok(mail("ann"))));
}

async fn ids_are_any_text_that_is_one(client: Client) {
    let numbers = client.queue::<u32>("numbers").unwrap();
    let typed: JobId = "typed".parse().unwrap();
    let owned = String::from("owned");
    assert_eq!(numbers.publish(&1).id("text").delay(HOUR).await.unwrap().id.as_str(), "text");
    assert_eq!(numbers.publish(&1).id(&owned).delay(HOUR).await.unwrap().id.as_str(), "owned");
    assert_eq!(numbers.publish(&1).id(typed.clone()).delay(HOUR).await.unwrap().id, typed);
    assert!(numbers.publish(&1).id(&typed).await.unwrap().duplicate);
    assert!(numbers.inspect("text").await.unwrap().is_some());
    numbers.reschedule(owned, HOUR).await.unwrap();
    assert_eq!(numbers.cancel(&typed).await.unwrap(), CancelOutcome::Cancelled);
    let bad = "spaces are none";
    for refused in [
        numbers.publish(&1).id(bad).await.map(drop),
        numbers.publish(&1).id(bad).id("good").await.map(drop),
        numbers.upsert(bad, &1).await.map(drop),
        numbers.cancel(bad).await.map(drop),
        numbers.inspect(bad).await.map(drop),
        numbers.reschedule(bad, HOUR).await.map(drop),
        client.queue::<u32>(bad).map(drop),
    ] {
        let Err(Error::Name(error)) = refused else { panic!("{refused:?}") };
        assert!(error.to_string().contains(bad), "{error}");
    }
}

/// What it is called with can be sent to another thread, whatever it borrows.
fn is_send<T: Send>(_: T) {}

#[tokio::test]
async fn what_is_awaited_can_be_spawned() {
    let (client, time) = delayline_tokio::test();
    let numbers = client.queue::<u32>("numbers").unwrap();
    let worker = || Worker::new(&client).queue(&numbers, async |_: Context| ());
    is_send(numbers.publish(&1));
    is_send(numbers.publish(&1).into_future());
    is_send(numbers.upsert("id", &1).into_future());
    is_send(numbers.publish_all([1, 2].map(|i| numbers.publish(&i))));
    is_send(numbers.publish_all((0..2).map(|i| numbers.publish(&i))));
    is_send(numbers.publish_stream(stream::empty()).next());
    is_send(numbers.take().into_future());
    is_send(numbers.cancel("id"));
    is_send(numbers.cancel_all(Vec::new()));
    is_send(numbers.reschedule("id", HOUR));
    is_send(numbers.inspect("id"));
    is_send(numbers.list(Place::Ready, 1, None));
    is_send(numbers.stats(0));
    is_send(numbers.requeue_all());
    is_send(numbers.pause());
    is_send(numbers.destroy());
    is_send(client.queues(None, 1));
    is_send(client.ping());
    is_send(client.clone().close());
    is_send(Client::connect("memory://"));
    is_send(worker());
    is_send(worker().run());
    is_send(worker().run_until(std::future::pending::<()>()));
    is_send(time.advance(HOUR));
    is_send(time.drain_due());
}
