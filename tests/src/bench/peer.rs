use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::bed::Bed;
use super::burst::{LEAD, LEAD_A_JOB, SLOTS, TRIES, rate};
use super::publishing::Way;
use super::rounds::{Base, Sample};

const PATIENCE: Duration = Duration::from_secs(120);

/// Another system, by a program of `tests/bench/peers`.
pub(super) struct Peer {
    name: String,
}

/// A burst's program while it runs.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Peer {
    /// Makes its program ready.
    ///
    /// # Panics
    /// If that cannot be done.
    pub(super) fn new(name: &str) -> Peer {
        let peer = Peer { name: name.to_owned() };
        let status = peer.command().status().expect("the script that runs peers");
        assert!(status.success(), "the peer {name} cannot be made ready: {status}");
        peer
    }

    /// Has it do a burst, and says how fast it published and how fast it worked.
    pub(super) fn burst(&self, bed: &mut Bed, case: &str, jobs: usize) -> Vec<Sample> {
        let lead = LEAD + LEAD_A_JOB * u32::try_from(jobs).expect("not that many");
        let found = (0..TRIES).find_map(|attempt| self.attempt(bed, case, jobs, lead * 4_u32.pow(attempt)));
        found.unwrap_or_else(|| panic!("{} does not publish {jobs} jobs in time", self.name))
    }

    /// `None` if the jobs were due before all were published.
    fn attempt(&self, bed: &mut Bed, case: &str, jobs: usize, lead: Duration) -> Option<Vec<Sample>> {
        bed.ask(&["FLUSHALL", "SYNC"]);
        let mut running = Running::start(self.command().args([
            bed.server().url(),
            jobs.to_string(),
            SLOTS.to_string(),
            lead.as_millis().to_string(),
        ]));
        running.hear("ready");
        let before = bed.spent();
        let published = running.hear("published");
        let (seconds, in_time) =
            published.split_once(' ').expect("the seconds, and whether that was in time");
        let publishing = bed.spent().since(before);
        if in_time != "true" {
            return None;
        }
        let before = bed.spent();
        let done = running.hear("done");
        let working = bed.spent().since(before);
        let rows = [(Way::Together.name(), seconds, publishing), (case, done.as_str(), working)];
        let samples = rows.into_iter().flat_map(|(case, seconds, spent)| {
            let seconds: f64 = seconds.parse().expect("a number of seconds");
            let took = Duration::from_secs_f64(seconds.max(1e-6));
            let figures = [vec![rate(jobs, took)], spent.figures(jobs)].concat();
            // What this process did meanwhile is not the peer's.
            let figures = figures.into_iter().filter(|(figure, _)| !figure.contains("client"));
            figures.map(move |(figure, value)| self.sample(case, figure, value))
        });
        Some(samples.collect())
    }

    fn sample(&self, case: &str, figure: &str, value: f64) -> Sample {
        let (case, of, figure) = (case.to_owned(), self.name.clone(), figure.to_owned());
        Sample { case, of, figure, value, base: Base::Of("this") }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/peers/run"));
        command.arg(&self.name);
        command
    }
}

impl Running {
    fn start(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the script that runs peers");
        let said = BufReader::new(child.stdout.take().expect("what it prints")).lines();
        let (sender, lines) = channel();
        thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Running { child, lines }
    }

    /// What it says after a word.
    fn hear(&mut self, word: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|why| panic!("the peer does not say {word:?}: {why}"));
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
