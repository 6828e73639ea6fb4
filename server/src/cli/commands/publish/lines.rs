use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use delayline_http::{Draft, Problem, item};
use delayline_tokio::{Error, Queue};
use futures_util::{FutureExt, Stream, StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;

use super::tally::{Refused, Tally, Told};
use crate::cli::stop::Stop;
use crate::failure::Failure;
use crate::service::draft;
use crate::service::lines::{self, Line};

const CHUNK: usize = 256 << 10;
const LINE_BYTES: usize = 2 << 20;
const BATCH_JOBS: usize = 500;
const BATCH_BYTES: usize = 4 << 20;
/// How many batches are on their way at once.
const UNDER_WAY: usize = 4;
const REDRAWN: Duration = Duration::from_millis(100);

/// Publishes the jobs of an input, a line of NDJSON each, and holds no more than some batches of them.
pub(super) struct Lines<'a> {
    /// Where they are; stdin if not given.
    pub(super) file: Option<&'a Path>,
    pub(super) allow_duplicates: bool,
    pub(super) json: bool,
}

type Input = Result<(u64, Line), std::io::Error>;

impl Lines<'_> {
    pub(super) async fn run(&self, queue: &Queue) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        tracing::info!("reading jobs for {} at {}", queue.name(), queue.address());
        let (input, length) = self.open().await?;
        let bar = self.bar(length);
        let enough = Notify::new();
        let over = async {
            tokio::select! {
                () = stop.clone().asked() => {}
                () = enough.notified() => {}
            }
        };
        let mut lines = Box::pin(lines::numbered(Box::pin(chunks(input)), LINE_BYTES).take_until(over));
        let publishing = self.publish(queue, &mut lines, &enough, &bar);
        let (tally, trouble) = tokio::select! {
            published = publishing => published,
            () = stop.clone().insisted() => return Err(Failure::Interrupted),
        };
        bar.finish_and_clear();
        tally.sum_up(self.json)?;
        match trouble {
            Some(trouble) => Err(trouble),
            None if stop.was_asked() => Err(Failure::Cut(tally.last_line)),
            None => tally.judge(self.allow_duplicates),
        }
    }

    async fn open(&self) -> Result<(Box<dyn AsyncRead + Unpin>, Option<u64>), Failure> {
        let Some(file) = self.file else { return Ok((Box::new(tokio::io::stdin()), None)) };
        let refused = |why| Failure::Unreadable { path: file.to_path_buf(), why };
        let opened = tokio::fs::File::open(file).await.map_err(refused)?;
        let length = opened.metadata().await.map_err(refused)?.len();
        Ok((Box::new(opened), (length > 0).then_some(length)))
    }

    /// Shows progress on a terminal: by the bytes if it is known how many there are.
    fn bar(&self, length: Option<u64>) -> ProgressBar {
        let target = if self.json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(length, target);
        let template = match length {
            Some(_) => "{bar:30} {percent:>3} %  {msg}  {eta} left",
            None => "{spinner} {msg}  {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(REDRAWN);
        bar
    }

    /// Publishes batch after batch, and reads no more once Redis does not answer; what was read is told of.
    async fn publish(
        &self,
        queue: &Queue,
        lines: &mut (impl Stream<Item = Input> + Unpin),
        enough: &Notify,
        bar: &ProgressBar,
    ) -> (Tally, Option<Failure>) {
        let batches = stream::unfold(lines, |lines| async move { Some((batch(lines).await?, lines)) });
        let mut published = Box::pin(batches.map(|batch| publish(queue, batch)).buffered(UNDER_WAY));
        let (mut tally, mut trouble) = (Tally::default(), None);
        while let Some((batch, broken)) = published.next().await {
            for told in batch {
                bar.inc(told.bytes as u64);
                trouble = trouble.or_else(|| told.trouble());
                tally.count(&told);
                if !told.is_fine(self.allow_duplicates) {
                    bar.suspend(|| told.complain(self.json));
                }
            }
            bar.set_message(format!("{} jobs", tally.created));
            trouble = trouble.or(broken.map(Failure::Io));
            if trouble.is_some() {
                enough.notify_one();
            }
        }
        (tally, trouble)
    }
}

/// The input in chunks.
fn chunks(input: Box<dyn AsyncRead + Unpin>) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
    stream::try_unfold(input, |mut input| async move {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = input.read_buf(&mut chunk).await?;
        Ok((read > 0).then(|| (chunk.freeze(), input)))
    })
}

/// The lines that are there, up to a limit: a slow input does not hold back what it has written.
async fn batch(lines: &mut (impl Stream<Item = Input> + Unpin)) -> Option<Vec<Input>> {
    let mut batch = vec![lines.next().await?];
    let mut bytes = 0;
    while batch.len() < BATCH_JOBS && bytes < BATCH_BYTES {
        let Some(Some(line)) = lines.next().now_or_never() else { break };
        if let Ok((_, Line::Whole(json))) = &line {
            bytes += json.len();
        }
        batch.push(line);
    }
    Some(batch)
}

/// Publishes a batch, and answers what became of each line, and why the input broke off if it did.
async fn publish(queue: &Queue, batch: Vec<Input>) -> (Vec<Told>, Option<std::io::Error>) {
    let (mut read, mut drafts, mut broken) = (Vec::new(), Vec::new(), None);
    for line in batch {
        match line {
            Ok((number, line)) => read.push((
                number,
                line.bytes(),
                described(line).map(|draft| {
                    let id = draft.id.clone();
                    drafts.push(draft::publish(draft, queue));
                    id
                }),
            )),
            Err(error) => broken = Some(error),
        }
    }
    let mut published = queue.publish_all(drafts).await.into_iter();
    let told = read.into_iter().map(|(number, bytes, read)| match read {
        Ok(id) => {
            let unknown = || Err(Error::Unknown { address: queue.address().to_owned() });
            let published = published.next().unwrap_or_else(unknown).map_err(Refused::Queue);
            Told { number, bytes, id, published }
        }
        Err(problem) => Told { number, bytes, id: None, published: Err(Refused::Line(problem)) },
    });
    (told.collect(), broken)
}

fn described(line: Line) -> Result<Draft, Problem> {
    match line {
        Line::Whole(json) => item::read(&json, None),
        Line::TooLong => {
            let detail =
                format!("the line is over {LINE_BYTES} bytes, so it was not read: publish a smaller payload");
            Err(Problem::too_large("payload_too_large", detail))
        }
    }
}
