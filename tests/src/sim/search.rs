use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;

use super::summary::{Part, Summary};
use super::{Bug, Failure, Plan, Report, Story, run, run_on, shrink};
use crate::{RedisServer, RedisStore};

const PART: u64 = 1_000;
/// Every so many seeds one is run twice, to see that it does the same.
const TWICE_EVERY: u64 = 50;

/// Runs plans: one, or a range of seeds.
#[derive(Debug, Parser)]
#[command(name = "sim")]
pub struct Args {
    /// Replays a seed
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "plan"])]
    seed: Option<u64>,
    /// Searches a range of seeds for one that fails
    #[arg(long, value_name = "N..M", value_parser = range, conflicts_with = "plan")]
    seeds: Option<Range<u64>>,
    /// Replays a plan
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Tells what happens, to all jobs or to the one of this name
    #[arg(long, value_name = "JOB", num_args = 0..=1)]
    #[allow(clippy::option_option)]
    trace: Option<Option<String>>,
    /// Plants a bug in the store, to see that it is found
    #[arg(long, value_name = "NAME")]
    bug: Option<Bug>,
    /// Runs on a real redis-server, whose clock is held
    #[arg(long)]
    redis: bool,
    /// Appends what was run to this file, and runs nothing twice that is in it
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// How many threads search
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Where the shrunk plan of a failing seed goes
    #[arg(long, value_name = "DIR", default_value = "tests/plans")]
    plans: PathBuf,
}

/// Carries the command line out.
pub fn search(args: Args) -> ExitCode {
    let outcome = match (&args.seed, &args.seeds, &args.plan) {
        (Some(seed), ..) => replay(&args, &Plan::draw(*seed)),
        (_, Some(seeds), _) => search_all(&args, seeds.clone()),
        (.., Some(file)) => read(file).and_then(|plan| replay(&args, &plan)),
        _ => Err("name --seed N, --seeds N..M, or --plan FILE".to_owned()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("sim: {why}");
            ExitCode::from(2)
        }
    }
}

/// Plays one plan, and says what came of it.
fn replay(args: &Args, plan: &Plan) -> Result<bool, String> {
    let of = args.trace.clone().flatten().map(|name| name.parse().map_err(|_| format!("{name:?} is no job")));
    let of = of.transpose()?;
    let story = args.trace.is_some().then(|| Story::about(of));
    match play(args, plan, story) {
        Ok(report) => {
            println!("{}", told(&report));
            Ok(true)
        }
        Err(failure) => {
            println!("seed {} {failure}", plan.seed);
            Ok(false)
        }
    }
}

fn play(args: &Args, plan: &Plan, story: Option<Story>) -> Result<Report, Box<Failure>> {
    if args.redis {
        let server = RedisServer::plain();
        let mut store = RedisStore::new(&server, super::names::keys(plan.shards).shards());
        store.plant(args.bug);
        return run_on(store, plan, story);
    }
    run(plan, args.bug, story)
}

fn told(report: &Report) -> String {
    let Report { steps, trace, virtual_ms, accepted, settled_percent, .. } = report;
    format!(
        "{accepted} jobs accepted, {steps} steps in {}.{:03} simulated s, trace {trace:016x}, settled in {settled_percent} % \
         of the time there was",
        virtual_ms / 1000,
        virtual_ms % 1000
    )
}

/// Runs a range part by part on some threads, until one fails.
fn search_all(args: &Args, seeds: Range<u64>) -> Result<bool, String> {
    let mut summary = match &args.summary {
        Some(file) => Summary::read(file).map_err(|error| format!("{}: {error}", file.display()))?,
        None => Summary::default(),
    };
    let parts: Vec<Range<u64>> = (seeds.start..seeds.end)
        .step_by(usize::try_from(PART).unwrap_or(1))
        .map(|from| from..(from + PART).min(seeds.end))
        .filter(|part| !summary.has(part))
        .collect();
    let (next, began) = (AtomicU64::new(0), Instant::now());
    let found: Mutex<(Summary, Option<(u64, Box<Failure>)>)> = Mutex::new((Summary::default(), None));
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let at = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                    let Some(part) = parts.get(at) else { break };
                    let outcome = run_part(args, part.clone());
                    let mut found = found.lock().expect("no thread panicked");
                    match outcome {
                        Ok(part) => {
                            if let Some(file) = &args.summary {
                                append(file, &part).expect("the summary can be written");
                            }
                            found.0.add(part);
                        }
                        Err(failed) => {
                            next.store(u64::MAX / 2, Ordering::Relaxed);
                            found.1.get_or_insert(failed);
                        }
                    }
                }
            });
        }
    });
    let (new, failed) = found.into_inner().expect("no thread panicked");
    if let Some((seed, failure)) = failed {
        println!("seed {seed} {failure}\nreplay: cargo run --release -p delayline-tests --bin sim -- --seed {seed} --trace");
        keep(args, seed, &failure).map_err(|error| error.to_string())?;
        return Ok(false);
    }
    println!("{}", new.told(began.elapsed()));
    if args.summary.is_some() {
        summary.extend(new);
        println!("all in the summary: {}", summary.counted());
    }
    Ok(true)
}

fn run_part(args: &Args, seeds: Range<u64>) -> Result<Part, (u64, Box<Failure>)> {
    let (began, mut part) = (Instant::now(), Part::of(seeds.clone()));
    for seed in seeds {
        let plan = Plan::draw(seed);
        let report = play(args, &plan, None).map_err(|failure| (seed, failure))?;
        if seed.is_multiple_of(TWICE_EVERY) && !args.redis {
            let again = play(args, &plan, None).map_err(|failure| (seed, failure))?;
            assert_eq!(report.trace, again.trace, "seed {seed} does something else the second time");
        }
        part.add(&report);
    }
    part.wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(part)
}

/// Shrinks what failed and writes it down.
fn keep(args: &Args, seed: u64, failure: &Failure) -> io::Result<()> {
    let oracle = failure.violation.oracle;
    let fails = |plan: &Plan| play(args, plan, None).is_err_and(|failure| failure.violation.oracle == oracle);
    let small = shrink(&Plan::draw(seed), fails);
    let what = play(args, &small, None).err().map_or_else(String::new, |failure| failure.to_string());
    fs::create_dir_all(&args.plans)?;
    let file = args.plans.join(format!("{}-{seed}.plan", oracle.replace(' ', "-")));
    fs::write(&file, format!("# {}\n{small}", what.replace('\n', " ")))?;
    println!(
        "shrunk to {} acts and {} blows: {what}\nreplay: cargo run --release -p delayline-tests --bin sim -- --plan {} --trace",
        small.acts.len(),
        small.blows.len(),
        file.display()
    );
    Ok(())
}

fn append(file: &Path, part: &Part) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    writeln!(file, "{}", serde_json::to_string(part)?)
}

fn read(file: &Path) -> Result<Plan, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", file.display()))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("write N..M")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    Ok(number(from)?..number(to)?)
}
