use delayline_tokio::{Error, QueueName, UnixMs};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::arrival::Arrival;
use super::connection::Connection;
use super::destination::{Destination, Landed};
use super::journal::{Claim, Journal};
use super::origin::Origin;
use super::pauses::{Note, Verdict};
use super::report::{Place, Report, Sides};
use crate::cli::print;
use crate::cli::redis::Redis;
use crate::cli::stop::Stop;
use crate::failure::Failure;

const REDRAWN: std::time::Duration = std::time::Duration::from_millis(100);

/// Moves jobs: out of the old system into the journal, from there into their queues, then off the journal. A process that
/// is killed at any point leaves each job in at least one of these, and never lets it run from two.
pub(super) struct Mover {
    pub(super) source: Connection,
    pub(super) journal: Journal,
    /// Nothing is moved, and nothing looked at there, in a dry run.
    pub(super) destination: Option<Destination>,
    pub(super) report: Report,
    pub(super) bar: ProgressBar,
    pub(super) stop: Stop,
    json: bool,
}

/// An element that is a job.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) place: Place,
    pub(super) claim: Claim,
    pub(super) arrival: Arrival,
    /// The key of its body, if it has one of its own: it is removed when the job is published.
    pub(super) body: Option<Vec<u8>>,
    /// Where it is put back to if it is refused.
    pub(super) origin: Origin,
}

impl Mover {
    /// Connects to both sides, and takes the lock.
    pub(super) async fn begin(
        redis: &Redis,
        from: &str,
        journal: Journal,
        is_dry: bool,
        json: bool,
    ) -> Result<Mover, Failure> {
        let stop = Stop::listen()?;
        let source = Connection::open(from).await?;
        let mut destination = None;
        if !is_dry {
            let url = redis.shared_url().ok_or(Failure::NeedsRedis("cannot be imported to"))?;
            destination = Some(Destination::connect(redis, url).await?);
        }
        let report = Report::new(is_dry);
        let bar = ProgressBar::hidden();
        let mut mover = Mover { source, journal, destination, report, bar, stop, json };
        if !is_dry {
            mover.journal.lock(&mut mover.source).await?;
            mover.check_notes().await?;
        }
        Ok(mover)
    }

    pub(super) fn is_dry(&self) -> bool {
        self.destination.is_none()
    }

    /// Whether the process was told to stop: it does so between two batches.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.was_asked()
    }

    /// The clock of the Redis that jobs are moved to.
    pub(super) fn now(&self) -> UnixMs {
        self.destination.as_ref().map_or(UnixMs(0), Destination::now)
    }

    /// What there is at first; shows progress from here on.
    pub(super) fn found_before(&mut self, counts: impl IntoIterator<Item = (Place, u64)>) {
        let mut all = 0;
        for (place, count) in counts {
            self.report.row(place).before = count;
            all += count;
        }
        self.show(all);
    }

    /// What is left in the end.
    pub(super) fn found_after(&mut self, counts: impl IntoIterator<Item = (Place, u64)>) {
        for (place, count) in counts {
            self.report.row(place).after = count;
        }
    }

    /// Shows progress on a terminal, once it is known how many elements there are.
    fn show(&mut self, elements: u64) {
        let target = if self.json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        self.bar = ProgressBar::with_draw_target(Some(elements), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len}  {per_sec}  {eta} left") {
            self.bar.set_style(style);
        }
        self.bar.enable_steady_tick(REDRAWN);
    }

    /// Moves candidates that are all at one place; answers how many elements are left there.
    pub(super) async fn transfer(
        &mut self,
        origin: &Origin,
        candidates: Vec<Candidate>,
    ) -> Result<u64, Failure> {
        let found = candidates.len() as u64;
        let mut checked = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            match candidate.arrival.check() {
                Ok(()) => checked.push(candidate),
                Err(why) => self.report.leave(candidate.place, &why, &candidate.claim.element),
            }
        }
        let refused = found - checked.len() as u64;
        self.bar.inc(refused);
        if self.is_dry() {
            for candidate in &checked {
                self.report.row(candidate.place).moved += 1;
            }
            self.bar.inc(checked.len() as u64);
            return Ok(found);
        }
        if checked.is_empty() {
            return Ok(refused);
        }
        self.prepare(&checked).await?;
        let claims = checked.iter().map(|candidate| &candidate.claim);
        let claimed = self.journal.claim(&mut self.source, origin, claims).await?;
        let claimed = checked.into_iter().zip(claimed).filter(|(_, claimed)| *claimed);
        let back = self.deliver(claimed.map(|(candidate, _)| candidate).collect()).await?;
        Ok(refused + back)
    }

    /// Publishes what stands in the journal, and takes it off; answers how many were refused, and put back.
    pub(super) async fn deliver(&mut self, claimed: Vec<Candidate>) -> Result<u64, Failure> {
        let Some(destination) = self.destination.as_mut().filter(|_| !claimed.is_empty()) else {
            return Ok(0);
        };
        let arrivals = claimed.iter().map(|candidate| candidate.arrival.clone()).collect();
        let landed = self.journal.keep(&self.source, destination.land(arrivals)).await??;
        let (mut published, mut failure, mut back) = (Vec::new(), None, 0);
        for (candidate, landed) in claimed.into_iter().zip(landed) {
            match landed {
                Ok(landed) => published.push((candidate, landed)),
                Err(error) if is_about_the_job(&error) => {
                    let why = error.to_string();
                    let claims = std::iter::once(&candidate.claim);
                    self.journal.put_back(&mut self.source, &candidate.origin, claims).await?;
                    self.report.leave(candidate.place, &why, &candidate.claim.element);
                    back += 1;
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let bodies: Vec<&[u8]> = published.iter().filter_map(|(of, _)| of.body.as_deref()).collect();
        let entries = published.iter().map(|(of, _)| &*of.claim.entry);
        self.journal.forget(&mut self.source, entries, &bodies).await?;
        for (candidate, landed) in &published {
            let row = self.report.row(candidate.place);
            match landed {
                Landed::New => row.moved += 1,
                Landed::AlreadyThere => row.already_there += 1,
            }
        }
        self.bar.inc(published.len() as u64 + back);
        failure.map_or(Ok(back), |failure| Err(failure.into()))
    }

    /// Pauses the queues of these that are not yet known.
    pub(super) async fn prepare(&mut self, candidates: &[Candidate]) -> Result<(), Failure> {
        let Some(destination) = self.destination.as_mut() else { return Ok(()) };
        for Candidate { arrival, .. } in candidates {
            if destination.knows(&arrival.queue) {
                continue;
            }
            let name = arrival.queue.as_str();
            let stats = destination.add(&arrival.queue).await?;
            let note = self.journal.noted(&mut self.source, name).await?;
            let note = note.and_then(|note| note.parse::<Note>().ok());
            let verdict = note.map_or(Verdict::Pause, |note| note.judge(&stats));
            match verdict {
                Verdict::Kept => continue,
                Verdict::Pause | Verdict::Touched | Verdict::Another => {}
            }
            if note.is_none() && stats.paused {
                let born = stats.born.map_or(0, |born| born.0);
                let note = Note::WasPaused { born }.to_string();
                self.journal.note(&mut self.source, name, &note).await?;
                continue;
            }
            self.journal.note(&mut self.source, name, &Note::Pausing.to_string()).await?;
            let (born, cfgver) = destination.pause(&arrival.queue).await?;
            let note = Note::Paused { born, cfgver }.to_string();
            self.journal.note(&mut self.source, name, &note).await?;
        }
        Ok(())
    }

    /// Looks at what a run that was broken off has noted: whether it went to these queues, and whether they have been
    /// paused since.
    async fn check_notes(&mut self) -> Result<(), Failure> {
        let Some(destination) = &self.destination else { return Ok(()) };
        let begun = self.journal.count(&mut self.source).await?;
        for (name, note) in self.journal.all_noted(&mut self.source).await? {
            let (Ok(queue), Ok(note)) = (name.parse::<QueueName>(), note.parse::<Note>()) else { continue };
            match note.judge(&destination.look_at(&queue).await?) {
                Verdict::Another => {
                    return Err(Failure::OtherDestination { queue: name, key: self.journal.key().to_owned() });
                }
                Verdict::Touched if begun > 0 => self.report.notes.push(format!(
                    "queue {name} was resumed or configured after an import broke off: of the {begun} jobs that were on \
                     their way then, those that were published, consumed and acknowledged since run twice"
                )),
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends the pauses of the import. Nothing stands in the journal any more.
    async fn resume(&mut self) -> Result<(), Failure> {
        let Some(destination) = &self.destination else { return Ok(()) };
        for (name, note) in self.journal.all_noted(&mut self.source).await? {
            match (name.parse::<QueueName>(), note.parse::<Note>()) {
                (Ok(queue), Ok(note)) if note.is_own() => destination.resume(&queue).await?,
                (Ok(_), Ok(_)) => self.report.notes.push(format!(
                    "queue {name} was paused before, and still is: `delayline resume {name}` lets its jobs run"
                )),
                _ => {}
            }
            self.journal.unnote(&mut self.source, &name).await?;
        }
        Ok(())
    }

    /// Resumes the queues, prints the report, and says how it ended.
    pub(super) async fn end(mut self, done: Result<(), Failure>, source: &str) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let ended = match done {
            Ok(()) => self.finish(source).await,
            Err(failure) => {
                self.tell_how_it_stands(&failure);
                Err(failure)
            }
        };
        if !self.is_dry() {
            let _ = self.journal.unlock(&mut self.source).await;
        }
        if let Some(destination) = self.destination.take() {
            destination.close().await;
        }
        ended
    }

    async fn finish(&mut self, source: &str) -> Result<(), Failure> {
        self.resume().await?;
        let (queues, sizes, address) = match &self.destination {
            Some(to) => (to.queues(), to.sizes().await?, to.address().to_owned()),
            None => (0, Default::default(), String::new()),
        };
        let source = format!("{source} at {}", self.source.address());
        self.report.print(&Sides { source: &source, destination: &address, queues, sizes }, self.json)?;
        let total = self.report.total();
        match total.left {
            _ if self.is_dry() => Ok(()),
            _ if self.is_stopped() => Err(Failure::StoppedImport),
            0 => Ok(()),
            failed => {
                let what = "elements were left where they are: the reasons are told";
                Err(Failure::Partly { failed, all: total.before.max(failed), what })
            }
        }
    }

    /// Says what a run that failed has left behind.
    fn tell_how_it_stands(&mut self, failure: &Failure) {
        let has_begun = self.destination.as_ref().is_some_and(|to| to.queues() > 0);
        if !has_begun || matches!(failure, Failure::Importing { .. }) {
            return;
        }
        let moved = self.report.total().moved;
        let detail = format!(
            "{moved} jobs were moved. Run it again to go on: the queues stay paused until then, and what was on its way \
             stands in {} there",
            self.journal.key()
        );
        if self.json {
            print::complaint(&serde_json::json!({ "code": "broken_off", "detail": detail, "moved": moved }));
        } else {
            eprintln!("{detail}");
        }
    }
}

/// Whether another job might pass where this one was refused.
fn is_about_the_job(error: &Error) -> bool {
    matches!(
        error,
        Error::Invalid(_) | Error::Name(_) | Error::TooLarge { .. } | Error::Record(_) | Error::Encode { .. }
    )
}
