use delayline_core::Shards;

use super::bare::Bare;
use super::scripts::Scripts;
use super::{Options, Row, Spent};
use crate::http_cost::Interval;
use crate::{Connection, RedisServer};

/// The jobs that wait behind those that are measured.
const BACKLOG: usize = 2_000;

/// Whole lives of jobs of 100 bytes: published due, granted, acknowledged, in batches of one size. No engine is in between:
/// what is counted is Redis's alone, with what it takes to read a request and to write an answer.
pub struct Life {
    /// The batches' sizes.
    pub batches: Vec<usize>,
}

/// Whoever can have jobs live.
pub(super) trait Lives {
    /// Publishes so many jobs that are due.
    fn publish(&mut self, count: usize);
    /// Grants so many, and acknowledges them.
    fn run(&mut self, count: usize);
}

struct Measured {
    of: &'static str,
    lives: Box<dyn Lives>,
    us: Vec<f64>,
    calls: f64,
}

impl Life {
    /// Measures each size.
    ///
    /// # Panics
    /// If the server cannot be had, or answers otherwise than it should.
    pub fn measure(&self, options: &Options) -> Vec<Row> {
        self.batches.iter().flat_map(|batch| measure(*batch, options)).collect()
    }
}

fn measure(batch: usize, options: &Options) -> Vec<Row> {
    let server = RedisServer::plain();
    let mut meter = server.connect();
    let mut all: Vec<Measured> = vec![Measured::new("scripts", Scripts::new(&server, "ours", None))];
    if let Some(folder) = &options.against {
        all.push(Measured::new("against", Scripts::new(&server, "theirs", Some(folder))));
    }
    all.push(Measured::new("bare commands", Bare::new(&server, Shards::default())));
    for measured in &mut all {
        (0..BACKLOG / 100).for_each(|_| measured.lives.publish(100));
    }
    for round in 0..=options.rounds {
        // Whoever comes second finds the caches as the other left them: they take turns at that.
        let turns = all.len();
        for turn in 0..turns {
            let measured = &mut all[(turn + round) % turns];
            let spent = measured.live(batch, options.jobs.div_ceil(batch), &mut meter);
            if round > 0 {
                measured.us.push(spent);
            }
        }
    }
    let ours = all[0].us.clone();
    let row = |measured: Measured| {
        let ratios = measured.us.iter().zip(&ours).map(|(us, ours)| us / ours).collect();
        let what = format!("batches of {batch}");
        Row {
            what,
            of: measured.of,
            us: Interval::of(measured.us),
            ratio: Interval::of(ratios),
            calls: measured.calls,
        }
    };
    all.into_iter().map(row).collect()
}

impl Measured {
    fn new(of: &'static str, lives: impl Lives + 'static) -> Measured {
        Measured { of, lives: Box::new(lives), us: Vec::new(), calls: 0.0 }
    }

    /// Has batches live, and answers what a job of them cost.
    fn live(&mut self, batch: usize, batches: usize, meter: &mut Connection) -> f64 {
        let before = Spent::now(meter);
        for _ in 0..batches {
            self.lives.publish(batch);
            self.lives.run(batch);
        }
        let spent = Spent::now(meter).since(before);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (jobs, calls) = ((batch * batches) as f64, spent.calls as f64);
        self.calls = calls / jobs;
        spent.us / jobs
    }
}
