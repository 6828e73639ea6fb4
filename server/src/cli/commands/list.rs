use clap::{Args, ValueEnum};
use delayline_http::{JobPage, Kept, Time};
use delayline_tokio::{Cursor, Inspected, Place, Queue, QueueName, Stats};

use crate::cli::print;
use crate::cli::redis::{Redis, must_exist};
use crate::cli::table::{Align, Table};
use crate::failure::Failure;

const EXCERPT: usize = 40;

/// Lists the jobs of a queue in one state, a page at a time. Ready and delayed jobs come by due time, leased ones by the
/// end of their lease, dead ones by the time of death.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Ready and delayed jobs come by due time, leased ones by the end of their lease, dead ones by the time of death. With
--json a page is one document with its cursor; with --all it is a job a line.

Examples:
  delayline list welcome                         # what is due
  delayline list welcome --state delayed --limit 10
  delayline list welcome --state dead --all --json")]
pub struct List {
    /// Of which queue
    queue: QueueName,
    /// In which state they are
    #[arg(long, value_enum, default_value_t = State::Ready)]
    state: State,
    #[command(flatten)]
    pages: Pages,
}

/// How much of a list.
#[derive(Clone, Debug, Args)]
pub(super) struct Pages {
    /// At most so many, 1 to 256; large jobs make pages shorter
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=256))]
    limit: u16,
    /// Go on where a page ended
    #[arg(long, value_name = "TEXT", conflicts_with = "all")]
    cursor: Option<Cursor>,
    /// Page after page to the end
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Ready,
    Delayed,
    Leased,
    Dead,
}

impl List {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let place = match self.state {
            State::Ready => Place::Ready,
            State::Delayed => Place::Delayed,
            State::Leased => Place::Leased,
            State::Dead => Place::Dead,
        };
        list(redis, &self.queue, place, &self.pages, json).await
    }
}

pub(super) async fn list(
    redis: &Redis,
    name: &QueueName,
    place: Place,
    pages: &Pages,
    json: bool,
) -> Result<(), Failure> {
    let (state, limit) = (delayline_http::state(place), pages.limit);
    let curl = || format!("curl 'http://127.0.0.1:4747/v1/queues/{name}/jobs?state={state}&count={limit}'");
    redis.with_queue(name, curl, async |queue| pages.show(queue, place, json).await).await
}

impl Pages {
    async fn show(&self, queue: &Queue, place: Place, json: bool) -> Result<(), Failure> {
        let (mut cursor, mut shown) = (self.cursor.clone(), false);
        loop {
            let page = queue.list(place, self.limit, cursor.as_ref()).await?;
            cursor.clone_from(&page.next);
            let has_jobs = !page.items.is_empty();
            if !has_jobs && !shown && self.cursor.is_none() {
                must_exist(queue).await?;
            }
            match (json, self.all) {
                (true, false) => {
                    print::document(&JobPage::new(queue.name(), page.items, page.next.as_ref()))?;
                }
                (true, true) => {
                    let mut jobs = page.items.into_iter().map(|job| Kept::new(queue.name(), job));
                    jobs.try_for_each(|job| print::document(&job))?;
                }
                (false, _) if page.items.is_empty() => {}
                (false, _) => print::text(table(place, &page.items).headed(!shown))?,
            }
            shown |= has_jobs;
            match &cursor {
                Some(_) if self.all => {}
                Some(cursor) if !json => {
                    eprintln!("there are more: --cursor {cursor} shows the next, --all the rest");
                    return Ok(());
                }
                _ => break,
            }
        }
        if shown || self.cursor.is_some() { Ok(()) } else { explain(queue, place, json).await }
    }
}

/// Says why nothing is listed.
async fn explain(queue: &Queue, place: Place, json: bool) -> Result<(), Failure> {
    let name = queue.name();
    let Stats { born, ready, delayed, leased, dead, .. } = queue.stats(0).await?;
    born.ok_or_else(|| Failure::no_such_queue(name))?;
    if !json {
        let wanted = delayline_http::state(place);
        let sizes = [("ready", ready), ("delayed", delayed), ("leased", leased), ("dead", dead)];
        let others = sizes.iter().filter(|(state, _)| *state != wanted);
        let others: Vec<String> = others.map(|(state, jobs)| format!("{jobs} {state}")).collect();
        eprintln!("queue {name} has no {wanted} jobs, but {}", others.join(", "));
    }
    Ok(())
}

fn table(place: Place, jobs: &[Inspected]) -> Table {
    let at = match place {
        Place::Ready | Place::Delayed => "due",
        Place::Leased => "lease ends",
        Place::Dead => "died",
    };
    let last = if place == Place::Dead { "reason" } else { "payload" };
    let columns =
        [("id", Align::Left), (at, Align::Left), ("attempt", Align::Right), ("bytes", Align::Right)];
    let mut table = Table::new(&[&columns[..], &[(last, Align::Left)]].concat());
    for job in jobs {
        let body = job.contents.as_ref().map(|contents| &contents.body[..]);
        let bytes = body.map_or("?".to_string(), |body| body.len().to_string());
        let last = match (place, body) {
            (Place::Dead, _) => excerpt(job.last_reason().unwrap_or_default()),
            (_, Ok(body)) => str::from_utf8(body).map(excerpt).unwrap_or_default(),
            (_, Err(why)) => excerpt(&why.to_string()),
        };
        table.row([job.id.to_string(), Time(job.at).to_string(), job.attempt().to_string(), bytes, last]);
    }
    table
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}
