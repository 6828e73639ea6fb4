use std::time::Instant;

use futures_util::future::join_all;

use super::bed::Bed;
use super::burst::{body, rate};
use super::bursts::LATER;
use delayline_tokio::{Client, Queue};

const TASKS: usize = 64;
const SIDES: usize = 4;

/// How jobs are published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Together,
    SideBySide,
    OneByOne,
}

impl Way {
    pub(super) const ALL: [Way; 3] = [Way::Together, Way::SideBySide, Way::OneByOne];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Together => "one publish_all",
            Way::SideBySide => "four publish_all",
            Way::OneByOne => "64 tasks, one by one",
        }
    }

    /// How many tasks do it.
    fn tasks(self) -> usize {
        match self {
            Way::Together => 1,
            Way::SideBySide => SIDES,
            Way::OneByOne => TASKS,
        }
    }

    /// By one client, to a deployment in which there is nothing yet.
    pub(super) async fn publish(self, bed: &mut Bed, jobs: usize) -> Vec<(&'static str, f64)> {
        let client = bed.fresh_client().await;
        let figures = self.publish_by(&client, bed, jobs).await;
        client.close().await;
        figures
    }

    /// By this client, to where it is.
    pub(super) async fn publish_by(
        self,
        client: &Client,
        bed: &mut Bed,
        jobs: usize,
    ) -> Vec<(&'static str, f64)> {
        let queue = client.bytes("published").expect("a name");
        let each = jobs.div_ceil(self.tasks());
        let (before, begun) = (bed.spent(), Instant::now());
        let tasks = (0..self.tasks()).map(|task| {
            let (queue, numbers) = (queue.clone(), task * each..(task + 1) * each);
            tokio::spawn(async move {
                match self {
                    Way::Together | Way::SideBySide => all(&queue, numbers).await,
                    Way::OneByOne => each_alone(&queue, numbers).await,
                }
            })
        });
        for ended in join_all(tasks).await {
            ended.expect("no panic");
        }
        let (took, jobs) = (begun.elapsed(), each * self.tasks());
        [vec![rate(jobs, took)], bed.spent().since(before).figures(jobs)].concat()
    }
}

async fn all(queue: &Queue, numbers: std::ops::Range<usize>) {
    let jobs = numbers.map(|number| queue.publish_bytes(body(number)).delay(LATER));
    for published in queue.publish_all(jobs).await {
        published.expect("a job is published");
    }
}

async fn each_alone(queue: &Queue, numbers: std::ops::Range<usize>) {
    for number in numbers {
        queue.publish_bytes(body(number)).delay(LATER).await.expect("a job is published");
    }
}
