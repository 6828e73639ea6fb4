//! What log lines are inside of: spans that say which job.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use delayline_tokio::{Client, Context, Worker};
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context as Layered, SubscriberExt};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The spans of this crate, as they came.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Span>>>);

struct Span {
    number: u64,
    name: &'static str,
    level: Level,
    fields: Fields,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Fields(BTreeMap<&'static str, String>);

#[tokio::test]
async fn spans_say_which_job() {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let client = Client::connect("memory://").await.unwrap();
    let (taken, handled) = (client.bytes("taken").unwrap(), client.bytes("handled").unwrap());

    taken.publish_bytes("x").id("a").await.unwrap();
    assert_eq!(spans.named("publish", Level::DEBUG), [fields([("queue", "taken"), ("id", "a")])]);

    let jobs = taken.take().count(3).await.unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!(spans.named("take", Level::DEBUG), [fields([("queues", r#"["taken"]"#), ("count", "3")])]);

    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = Worker::new(&client).queue(&handled, move |job: Context| {
        let _ = tell.send(tracing::Span::current().metadata().map(tracing::Metadata::name));
        async move { if job.attempt == 1 { Err("the line is busy") } else { Ok(()) } }
    });
    let running = tokio::spawn(worker.run());
    let publish = handled.publish_bytes("x").id("b").trace(TRACE.parse().unwrap());
    publish.backoff("none".parse().unwrap()).await.unwrap();
    for _ in 0..2 {
        let within = tokio::time::timeout(Duration::from_secs(20), told.recv()).await.unwrap();
        assert_eq!(within, Some(Some("handle")), "what a handler logs is inside of its span");
    }
    let attempt = |n| fields([("queue", "handled"), ("id", "b"), ("attempt", n), ("trace", TRACE)]);
    assert_eq!(spans.named("handle", Level::INFO), [attempt("1"), attempt("2")]);
    client.close().await;
    running.await.unwrap().unwrap();
}

fn fields<const N: usize>(pairs: [(&'static str, &str); N]) -> Fields {
    Fields(pairs.map(|(name, value)| (name, value.to_owned())).into())
}

impl Spans {
    /// The fields of those of that name, all of which are of that level.
    fn named(&self, name: &str, level: Level) -> Vec<Fields> {
        let spans = self.0.lock().unwrap();
        let named = spans.iter().filter(|span| span.name == name);
        named
            .map(|span| {
                assert_eq!(span.level, level, "{name}");
                span.fields.clone()
            })
            .collect()
    }
}

impl<S: Subscriber> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Layered<'_, S>) {
        let metadata = attributes.metadata();
        if metadata.target().starts_with("delayline_tokio") {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            let (name, level) = (metadata.name(), *metadata.level());
            self.0.lock().unwrap().push(Span { number: id.into_u64(), name, level, fields });
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, _: Layered<'_, S>) {
        let mut spans = self.0.lock().unwrap();
        if let Some(span) = spans.iter_mut().rfind(|span| span.number == id.into_u64()) {
            record.record(&mut span.fields);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
