use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::Args;
use delayline_http::Time;
use delayline_tokio::{About, JobId, Line, QueueName, Replay as Steps, Step};
use serde::Serialize;

use crate::cli::print;
use crate::failure::Failure;

/// Steps the engine through what one was told, and prints in words what it heard and decided. Every decision is compared
/// with the recorded one.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A recording is what `delayline serve --flight-recorder FILE` saves, or a FlightRecorder of delayline-tokio. It holds no
payloads and no values of headers. Times are those of the engine, since it began.

Examples:
  delayline replay orders.recording
  delayline replay orders.recording --job ann:1
  delayline replay orders.recording --queue welcome --json")]
pub struct Replay {
    /// The recording
    file: PathBuf,
    /// Print only what is about this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<QueueName>,
    /// Print only what is about this job
    #[arg(long, value_name = "ID")]
    job: Option<JobId>,
}

/// Tells the story of one job out of a recording: what was asked, decided and answered about it, and why.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The same as `delayline replay FILE --job ID`.

Examples:
  delayline trace ann:1 orders.recording
  delayline trace ann:1 orders.recording --queue welcome --json")]
pub struct Trace {
    /// Which job
    id: JobId,
    /// The recording
    file: PathBuf,
    /// The queue of the job, if several have one of that id
    #[arg(long, value_name = "QUEUE")]
    queue: Option<QueueName>,
}

impl Trace {
    pub(crate) fn run(&self, json: bool) -> Result<(), Failure> {
        let Trace { id, file, queue } = self.clone();
        Replay { file, queue, job: Some(id) }.run(json)
    }
}

impl Replay {
    pub(crate) fn run(&self, json: bool) -> Result<(), Failure> {
        let path = &self.file;
        let bytes = std::fs::read(path).map_err(|why| Failure::Unreadable { path: path.clone(), why })?;
        let mut steps = Steps::open(&bytes).map_err(|why| damaged(path, &why))?;
        let mut report = Report::new(self, json, &steps)?;
        while let Some(heard) = steps.hear() {
            let mut step = heard.map_err(|why| damaged(path, &why))?;
            let decided = catch_unwind(AssertUnwindSafe(|| steps.decide(&mut step)));
            report.step(&step)?;
            match decided {
                Ok(decided) => decided.map_err(|why| damaged(path, &why))?,
                Err(_) => return Err(Failure::Panicked { at: step.at.to_string() }),
            }
        }
        report.end()
    }
}

fn damaged(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::Damaged { path: path.to_path_buf(), why: why.to_string() }
}

/// What is printed of a replay.
struct Report<'a> {
    queue: Option<&'a QueueName>,
    job: Option<&'a JobId>,
    json: bool,
    version: String,
    /// The queues in which the job was seen.
    seen: BTreeSet<QueueName>,
    diverged: Option<(String, u64)>,
}

#[derive(Serialize)]
struct Shown<'a> {
    at: String,
    heard: Vec<Told<'a>>,
    decided: Vec<Told<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    divergence: Option<String>,
}

#[derive(Serialize)]
struct Told<'a> {
    queue: Option<&'a str>,
    id: Option<&'a str>,
    words: &'a str,
}

impl Report<'_> {
    fn new<'a>(replay: &'a Replay, json: bool, steps: &Steps<'_>) -> Result<Report<'a>, Failure> {
        let header = steps.header();
        if !json {
            let origin = Time(header.origin);
            print::line(format_args!("recorded by delayline {}; 0.000s is {origin}", header.version))?;
        }
        let (queue, job) = (replay.queue.as_ref(), replay.job.as_ref());
        let version = header.version.clone();
        Ok(Report { queue, job, json, version, seen: BTreeSet::new(), diverged: None })
    }

    fn step(&mut self, step: &Step) -> Result<(), Failure> {
        let heard: Vec<&Line> = step.heard.iter().filter(|line| self.wants(line)).collect();
        let decided: Vec<&Line> = step.decided.iter().filter(|line| self.wants(line)).collect();
        let divergence = step.divergence.map(|divergence| divergence.to_string());
        if divergence.is_some() {
            self.diverged.get_or_insert((step.at.to_string(), 0)).1 += 1;
        }
        if heard.is_empty() && decided.is_empty() && divergence.is_none() {
            return Ok(());
        }
        if self.json {
            let (heard, decided) = (told(&heard), told(&decided));
            return print::document(&Shown { at: step.at.to_string(), heard, decided, divergence });
        }
        let at = step.at.to_string();
        for line in heard {
            print::line(format_args!("{at:>12}  {line}"))?;
        }
        for line in decided {
            print::line(format_args!("{at:>12}    -> {line}"))?;
        }
        divergence.map_or(Ok(()), |divergence| print::line(format_args!("{at:>12}  !! {divergence}")))
    }

    fn wants(&mut self, line: &Line) -> bool {
        let queue = line.about.queue();
        if self.queue.is_some() && queue != self.queue {
            return false;
        }
        let Some(job) = self.job else { return true };
        match &line.about {
            About::Job(queue, id) if id == job => {
                self.seen.insert(queue.clone());
                true
            }
            About::Jobs(queue) => self.seen.contains(queue),
            _ => false,
        }
    }

    fn end(self) -> Result<(), Failure> {
        if let Some((at, count)) = self.diverged {
            return Err(Failure::Diverged { count, at, version: self.version });
        }
        match self.job {
            Some(job) if self.seen.is_empty() => Err(Failure::NotRecorded(job.to_string())),
            _ => Ok(()),
        }
    }
}

fn told<'a>(lines: &[&'a Line]) -> Vec<Told<'a>> {
    let lines = lines.iter().map(|line| Told {
        queue: line.about.queue().map(QueueName::as_str),
        id: line.about.id().map(JobId::as_str),
        words: &line.words,
    });
    lines.collect()
}
