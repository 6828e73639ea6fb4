use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use delayline_tokio::{Error, JobId, Published, Queue};
use futures_util::{FutureExt, Stream, StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::draft::Draft;
use crate::failure::Failure;
use crate::item::{self, Outcome};
use crate::lines::{self, Line};
use crate::print;
use crate::problem::Problem;
use crate::stop::Stop;

const CHUNK: usize = 256 << 10;
const LINE_BYTES: usize = 2 << 20;
const BATCH_JOBS: usize = 500;
const BATCH_BYTES: usize = 4 << 20;
/// How many batches are on their way at once.
const UNDER_WAY: usize = 4;
const REDRAWN: Duration = Duration::from_millis(100);

/// Publishes the jobs of an input, a line of NDJSON each, holding no more than some batches of them.
pub(super) struct Import<'a> {
    /// Where they are; stdin if not given.
    pub(super) file: Option<&'a Path>,
    pub(super) allow_duplicates: bool,
    pub(super) json: bool,
}

/// What became of the lines so far.
#[derive(Default, Serialize)]
struct Tally {
    lines: u64,
    created: u64,
    duplicates: u64,
    failed: u64,
    #[serde(skip)]
    last_line: u64,
}

/// A line, and what became of it.
struct Told {
    number: u64,
    bytes: usize,
    id: Option<JobId>,
    published: Result<Published, Refused>,
}

enum Refused {
    /// The line describes no job.
    Line(Problem),
    Queue(Error),
}

/// A line's outcome as JSON.
#[derive(Serialize)]
struct Numbered {
    line: u64,
    #[serde(flatten)]
    outcome: Outcome,
}

type Input = Result<(u64, Line), std::io::Error>;

impl Import<'_> {
    pub(super) async fn run(&self, queue: &Queue) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let (input, length) = self.open().await?;
        let bar = self.bar(length);
        let lines = lines::numbered(Box::pin(chunks(input)), LINE_BYTES).take_until(stop.clone().asked());
        let mut lines = Box::pin(lines);
        let publishing = self.publish(queue, &mut lines, &bar);
        let (tally, trouble) = tokio::select! {
            published = publishing => published,
            () = stop.clone().insisted() => return Err(Failure::Interrupted),
        };
        bar.finish_and_clear();
        self.sum_up(&tally)?;
        match trouble {
            Some(trouble) => Err(trouble),
            None if stop.was_asked() => Err(Failure::Cut(tally.last_line)),
            None => self.judge(&tally),
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

    /// Publishes batch after batch, and stops reading once Redis does not answer.
    async fn publish(
        &self,
        queue: &Queue,
        lines: &mut (impl Stream<Item = Input> + Unpin),
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
                    bar.suspend(|| self.complain(told));
                }
            }
            bar.set_message(format!("{} jobs", tally.created));
            trouble = trouble.or(broken.map(Failure::Io));
            if trouble.is_some() {
                break;
            }
        }
        (tally, trouble)
    }

    fn complain(&self, told: Told) {
        let Told { number, id, published, .. } = told;
        let published = published.map_err(|refused| match refused {
            Refused::Line(problem) => problem,
            Refused::Queue(error) => error.into(),
        });
        if self.json {
            return print::complaint(&Numbered {
                line: number,
                outcome: Outcome::of(id.as_ref(), published),
            });
        }
        let id = id.map(|id| format!(" (id {id})")).unwrap_or_default();
        match published {
            Ok(_) => eprintln!("line {number}{id}: the id is in use, and its job is untouched"),
            Err(problem) => eprintln!("line {number}{id}: {}", problem.detail),
        }
    }

    fn sum_up(&self, tally: &Tally) -> Result<(), Failure> {
        if self.json {
            return print::document(tally);
        }
        let Tally { lines, created, duplicates, failed, .. } = tally;
        print::line(format_args!(
            "{created} of {lines} jobs published, {duplicates} duplicates, {failed} failed"
        ))
    }

    fn judge(&self, tally: &Tally) -> Result<(), Failure> {
        let duplicates = if self.allow_duplicates { 0 } else { tally.duplicates };
        match tally.failed + duplicates {
            0 => Ok(()),
            failed => Err(Failure::Partly { failed, all: tally.lines, what: "jobs were not published" }),
        }
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
                    drafts.push(draft.publish(queue));
                    id
                }),
            )),
            Err(error) => broken = Some(error),
        }
    }
    let mut published = queue.publish_all(drafts).await.into_iter();
    let told = read.into_iter().map(|(number, bytes, read)| match read {
        Ok(id) => {
            let published = published.next().unwrap_or(Err(Error::Unknown)).map_err(Refused::Queue);
            Told { number, bytes, id, published }
        }
        Err(problem) => Told { number, bytes, id: None, published: Err(Refused::Line(problem)) },
    });
    (told.collect(), broken)
}

fn described(line: Line) -> Result<Draft, Problem> {
    match line {
        Line::Whole(json) => item::read(&json),
        Line::TooLong => {
            let detail =
                format!("the line is over {LINE_BYTES} bytes, so it was not read: publish a smaller payload");
            Err(Problem::too_large("payload_too_large", detail))
        }
    }
}

impl Tally {
    fn count(&mut self, told: &Told) {
        self.lines += 1;
        self.last_line = told.number;
        match &told.published {
            Ok(published) if published.duplicate => self.duplicates += 1,
            Ok(_) => self.created += 1,
            Err(_) => self.failed += 1,
        }
    }
}

impl Told {
    fn is_fine(&self, allow_duplicates: bool) -> bool {
        self.published.as_ref().is_ok_and(|published| allow_duplicates || !published.duplicate)
    }

    /// Why it makes no sense to go on.
    fn trouble(&self) -> Option<Failure> {
        match &self.published {
            Err(Refused::Queue(error)) => {
                Some(Failure::from(error.clone())).filter(|failure| failure.exit_code() == 3)
            }
            _ => None,
        }
    }
}
