//! The wheel beside tokio-util's `DelayQueue` and the crate `hierarchical_hash_wheel_timer`. All three meet the same deadlines
//! and take turns in each round, so that they meet the same machine; a ratio is that of a round.
//!
//!     cargo bench -p delayline-micro --bench wheel
#![forbid(unsafe_code)]
#![allow(clippy::cast_precision_loss, reason = "times and their ratios are shown with three digits")]

use std::future::poll_fn;
use std::hint::black_box;
use std::task::Poll;
use std::time::{Duration, Instant};

use delayline_core::{Millis, Wheel};
use delayline_micro::{Load, Timers};
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use tokio::runtime::{Builder, Runtime};
use tokio::task::coop::unconstrained;
use tokio_util::time::{DelayQueue, delay_queue};

/// How many timers wait.
const TIMERS: [usize; 3] = [1_000, 100_000, 1_000_000];
/// How many rounds a step is measured, after one that only warms up.
const ROUNDS: usize = 100;
/// How many rounds all timers fire.
const ROUNDS_OF_ALL: usize = 5;

fn main() {
    // Cargo says `--bench`, and there is nothing to choose.
    let clock = Clock::default();
    let _entered = clock.runtime.enter();
    println!("Nanoseconds a timer, and how many times the wheel's that is: median (quartiles).");
    println!("hierarchical_hash_wheel_timer does not know what is next, only how far it may skip.\n");
    println!(
        "{:>9}  {:<7} {:>9}  {:<30}  hierarchical_hash_wheel_timer",
        "timers", "", "wheel", "DelayQueue"
    );
    for count in TIMERS {
        steps(&clock, count);
    }
}

/// What is done with timers while the clock stands still.
#[derive(Clone, Copy)]
enum Step {
    Insert,
    Cancel,
    Next,
    Renew,
}

/// Measures each step at so many timers, and prints a line of each.
fn steps(clock: &Clock, count: usize) {
    let mut wheel = Load::new(wheel(), count);
    let mut queue = Load::new(clock.queue(), count);
    let mut hash = Load::new(hash(), count);
    for (name, step) in
        [("insert", Step::Insert), ("cancel", Step::Cancel), ("next", Step::Next), ("renew", Step::Renew)]
    {
        let rounds = rounds(ROUNDS, |subject| match subject {
            0 => timed(&mut wheel, step, count),
            1 => timed(&mut queue, step, count),
            _ => timed(&mut hash, step, count),
        });
        show(count, name, &rounds);
    }
    drop((wheel, queue, hash));
    let rounds = rounds(ROUNDS_OF_ALL, |subject| match subject {
        0 => all_fire(self::wheel(), count),
        1 => all_fire(clock.queue(), count),
        _ => all_fire(self::hash(), count),
    });
    show(count, "expire", &rounds);
}

/// What `measure` says of each subject, round by round; who is first in one is last in the next.
fn rounds(count: usize, mut measure: impl FnMut(usize) -> f64) -> Vec<[f64; 3]> {
    let mut rounds = Vec::new();
    for round in 0..=count {
        let mut found = [0.0; 3];
        for turn in 0..3 {
            let subject = (turn + round) % 3;
            found[subject] = measure(subject);
        }
        rounds.push(found);
    }
    rounds.split_off(1)
}

/// Nanoseconds that one step takes, of many.
fn timed<T: Timers>(load: &mut Load<T>, step: Step, timers: usize) -> f64 {
    let count = (timers / 10).min(1_000);
    load.choose(count);
    load.plan(count);
    let begin;
    let took;
    match step {
        Step::Insert => {
            load.cancel(count);
            begin = Instant::now();
            load.insert(count);
            took = begin.elapsed();
        }
        Step::Cancel => {
            begin = Instant::now();
            load.cancel(count);
            took = begin.elapsed();
            load.insert(count);
        }
        Step::Next => {
            load.cancel(count);
            load.insert(count);
            begin = Instant::now();
            load.next(count);
            took = begin.elapsed();
        }
        Step::Renew => {
            begin = Instant::now();
            load.renew();
            took = begin.elapsed();
        }
    }
    took.as_nanos() as f64 / count as f64
}

/// Nanoseconds a timer if all fire, each in the second in which it is due.
fn all_fire<T: Timers>(timers: T, count: usize) -> f64 {
    let mut load = Load::new(timers, count);
    let begin = Instant::now();
    let fired = load.expire();
    let took = begin.elapsed();
    assert_eq!(fired, count, "a timer is lost");
    took.as_nanos() as f64 / count as f64
}

fn show(timers: usize, step: &str, rounds: &[[f64; 3]]) {
    let of = |value: &dyn Fn(&[f64; 3]) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| values[quarter * (values.len() - 1) / 4])
    };
    let peer = |subject: usize| {
        let [_, ns, _] = of(&|round| round[subject]);
        let [low, ratio, high] = of(&|round| round[subject] / round[0]);
        format!("{ns:>8.1}  {ratio:>5.2} ({low:.2}–{high:.2})")
    };
    let [_, ours, _] = of(&|round| round[0]);
    println!("{timers:>9}  {step:<7} {ours:>9.1}  {:<30}  {}", peer(1), peer(2));
}

fn wheel() -> Wheel<u64> {
    Wheel::new(Millis(0))
}

fn hash() -> Hash {
    Hash { wheel: QuadWheelWithOverflow::new(), now_ms: 0 }
}

/// Tokio's clock, which moves when it is told to.
struct Clock {
    runtime: Runtime,
}

impl Default for Clock {
    fn default() -> Clock {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        Clock { runtime: runtime.expect("a runtime") }
    }
}

impl Clock {
    fn queue(&self) -> Delays<'_> {
        Delays { queue: DelayQueue::new(), start: tokio::time::Instant::now(), runtime: &self.runtime }
    }
}

struct Delays<'a> {
    queue: DelayQueue<u64>,
    start: tokio::time::Instant,
    runtime: &'a Runtime,
}

impl Timers for Delays<'_> {
    type Key = delay_queue::Key;

    fn insert(&mut self, deadline_ms: u64, value: u64) -> delay_queue::Key {
        self.queue.insert_at(value, self.start + Duration::from_millis(deadline_ms))
    }

    fn cancel(&mut self, key: delay_queue::Key) -> bool {
        self.queue.try_remove(&key).is_some()
    }

    fn next(&self) -> Option<u64> {
        let key = self.queue.peek()?;
        u64::try_from((self.queue.deadline(&key) - self.start).as_millis()).ok()
    }

    fn expire(&mut self, now_ms: u64) -> usize {
        let Delays { queue, start, runtime } = self;
        let ahead = (*start + Duration::from_millis(now_ms)) - tokio::time::Instant::now();
        let mut fired = 0;
        // In one go, as it may be polled; a task would have to yield again and again.
        runtime.block_on(unconstrained(async {
            tokio::time::advance(ahead).await;
            poll_fn(|context| {
                while let Poll::Ready(Some(entry)) = queue.poll_expired(context) {
                    black_box(entry);
                    fired += 1;
                }
                Poll::Ready(())
            })
            .await;
        }));
        fired
    }
}

struct Hash {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>,
    now_ms: u64,
}

impl Timers for Hash {
    type Key = u64;

    fn insert(&mut self, deadline_ms: u64, value: u64) -> u64 {
        let delay = Duration::from_millis(deadline_ms - self.now_ms);
        self.wheel.insert(IdOnlyTimerEntry::new(value, delay)).expect("a deadline ahead");
        value
    }

    fn cancel(&mut self, key: u64) -> bool {
        self.wheel.cancel(&key).is_ok()
    }

    fn next(&self) -> Option<u64> {
        match self.wheel.can_skip() {
            Skip::Empty => None,
            Skip::Millis(ms) => Some(self.now_ms + u64::from(ms)),
            Skip::None => Some(self.now_ms + 1),
        }
    }

    fn expire(&mut self, now_ms: u64) -> usize {
        let mut fired = 0;
        while self.now_ms < now_ms {
            let left = now_ms - self.now_ms;
            match self.wheel.can_skip() {
                Skip::Millis(ms) => {
                    let ms = left.min(u64::from(ms));
                    self.wheel.skip(u32::try_from(ms).expect("a step"));
                    self.now_ms += ms;
                }
                Skip::None | Skip::Empty => {
                    fired += black_box(self.wheel.tick()).len();
                    self.now_ms += 1;
                }
            }
        }
        fired
    }
}
