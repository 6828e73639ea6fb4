use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use super::search::{Found, Search};
use super::summary::{Part, Summary};
use super::{Mistake, Plan, Report, Story};

/// Runs plans of the simulator: one, or those of a range of seeds.
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
    /// Plants a mistake in the store or the driver, to see that it is found
    #[arg(long, value_name = "NAME")]
    bug: Option<Mistake>,
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

/// Carries the command line out: 0 if no promise was broken, 1 if one was, 2 if the command line is wrong.
pub fn command_line(args: &Args) -> ExitCode {
    let outcome = match (&args.seed, &args.seeds, &args.plan) {
        (Some(seed), ..) => replay(args, &Plan::draw(*seed)),
        (_, Some(seeds), _) => search(args, seeds.clone()),
        (.., Some(file)) => read(file).and_then(|plan| replay(args, &plan)),
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
    match args.search().play(plan, story) {
        Ok(Report { steps, trace, virtual_ms, accepted, settled_percent, .. }) => {
            println!(
                "{accepted} jobs accepted, {steps} steps in {}.{:03} simulated s, settled in {settled_percent} % of the \
                 time there was, trace {trace:016x}",
                virtual_ms / 1000,
                virtual_ms % 1000
            );
            Ok(true)
        }
        Err(failure) => {
            println!("seed {} {failure}", plan.seed);
            Ok(false)
        }
    }
}

fn search(args: &Args, seeds: Range<u64>) -> Result<bool, String> {
    let search = args.search();
    let before = match &args.summary {
        Some(file) => Summary::read(file).map_err(|error| format!("{}: {error}", file.display()))?,
        None => Summary::default(),
    };
    let mut parts = search.divided(seeds);
    parts.retain(|part| !before.has(part));
    let done = |part: &Part| {
        if let Some(file) = &args.summary {
            append(file, part).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
    };
    match search.parts(&parts, done) {
        Ok(summary) => {
            println!("{summary}");
            if args.summary.is_some() {
                println!("all in the summary:\n{}", before.with(summary));
            }
            Ok(true)
        }
        Err(found) => {
            println!("{found}");
            keep(args, &search, &found).map_err(|error| error.to_string())?;
            Ok(false)
        }
    }
}

/// Shrinks what failed and writes it down.
fn keep(args: &Args, search: &Search, found: &Found) -> io::Result<()> {
    let small = search.shrunk(found);
    let what = search.play(&small, None).err().map_or_else(String::new, |failure| failure.to_string());
    fs::create_dir_all(&args.plans)?;
    let name = format!("{}-{}.plan", found.failure.violation.oracle.replace(' ', "-"), found.seed);
    let file = args.plans.join(name);
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

impl Args {
    fn search(&self) -> Search {
        Search { threads: self.threads, bug: self.bug, redis: self.redis }
    }
}
