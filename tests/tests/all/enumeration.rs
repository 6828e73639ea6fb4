//! All small cases: every sequence of a stated alphabet up to a stated length, on the store in memory and on servers.
//!
//! After `TigerBeetle`'s exhaustive generators. The alphabet is that of two jobs and two engines on one queue whose jobs
//! have two attempts, and its words are [`Letter`]s. Two things are left out: engine 2 acts only after engine 1 has, and a
//! step that leads where another sequence has been is not followed further, since both stores hold the same keys there,
//! at the same time: that is compared. A sequence that is followed no further is run on a server, all its replies and
//! messages are compared, and in the end all keys.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use delayline_core::Shards;
use delayline_tests::Flavour;

use crate::letter::Letter;
use crate::mirror::{Done, Mirror, Told};
use crate::scene::Scene;

/// The length on the usual server; one less on the others.
const DEPTH: usize = 4;
const SEQUENCES_AT_ONCE: usize = 100;
const WAITING: usize = 8;
const THREADS: usize = 2;

/// What was enumerated.
#[derive(Default)]
struct Count {
    /// Sequences that were told to a server.
    sequences: u64,
    /// Steps of the store in memory.
    steps: u64,
    /// Steps that led where another sequence had been.
    merged: u64,
}

#[test]
fn all_short_sequences_agree() {
    let flavours = Flavour::all();
    for (index, flavour) in flavours.into_iter().enumerate() {
        let (depth, began, name) = (DEPTH - usize::from(index > 0), Instant::now(), flavour.name);
        let (count, difference) = enumerate(&flavour, depth, &Scene::new());
        if let Some(difference) = difference {
            panic!("memory and {name} differ:\n{difference}");
        }
        println!(
            "memory and {name}: all sequences of {depth} of {} letters: {} of them run, {} steps, {} merged, in {:?}",
            Letter::all().len(),
            count.sequences,
            count.steps,
            count.merged,
            began.elapsed()
        );
    }
}

#[test]
fn a_planted_bug_is_found() {
    let (_, difference) = enumerate(&Flavour::usual(), 3, &Scene::with_a_bug());
    assert!(
        difference.is_some(),
        "no sequence of three told a store that forgets its sessions from one that does not"
    );
}

/// All sequences from a scene, held against servers; the first difference.
fn enumerate(flavour: &Flavour, depth: usize, scene: &Scene) -> (Count, Option<String>) {
    let (sender, receiver) = sync_channel::<Vec<Scene>>(WAITING);
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        let checkers = [(); THREADS].map(|()| scope.spawn(|| check(flavour, &receiver)));
        let mut walk = Walk { depth, seen: BTreeMap::new(), ended: Vec::new(), count: Count::default() };
        let mut send = |ended: &mut Vec<Scene>| sender.send(std::mem::take(ended)).is_ok();
        walk.follow(scene, &mut send);
        send(&mut walk.ended);
        drop(sender);
        let found =
            checkers.map(|checker| checker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (walk.count, found.into_iter().flatten().next())
    })
}

/// Holds sequences against a server until one differs.
fn check(flavour: &Flavour, scenes: &Mutex<Receiver<Vec<Scene>>>) -> Option<String> {
    let mut mirror = Mirror::new(flavour.clone());
    let next = || scenes.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    while let Some(scenes) = next() {
        if mirror.differs(&told(&scenes)).is_some() {
            let alone = scenes
                .iter()
                .find_map(|scene| Some((scene, mirror.differs(&told(std::slice::from_ref(scene)))?)));
            while next().is_some() {}
            let Some((scene, difference)) = alone else {
                return Some("only together with others".to_string());
            };
            return Some(format!("  {:?}\n{difference}", scene.letters));
        }
    }
    None
}

fn told(scenes: &[Scene]) -> Told {
    let mut told = Told { shards: Shards::default(), done: Vec::new(), heard: Vec::new() };
    for scene in scenes {
        told.done.push(Done::Cleared);
        told.done.extend(scene.done.iter().cloned());
        told.done.push(Done::Held(scene.now(), scene.dump()));
        told.heard.extend(scene.heard.iter().cloned());
    }
    told
}

/// A walk through all that can happen.
struct Walk {
    depth: usize,
    /// How much further what was seen has been followed.
    seen: BTreeMap<u64, usize>,
    ended: Vec<Scene>,
    count: Count,
}

impl Walk {
    fn follow(&mut self, scene: &Scene, send: &mut impl FnMut(&mut Vec<Scene>) -> bool) {
        let left = self.depth - scene.letters.len();
        for letter in Letter::all() {
            let Some(next) = scene.step(letter) else { continue };
            self.count.steps += 1;
            if left > 1 && self.is_new(&next, left - 1) {
                self.follow(&next, send);
                continue;
            }
            self.count.sequences += 1;
            self.ended.push(next);
            if self.ended.len() == SEQUENCES_AT_ONCE && !send(&mut self.ended) {
                return;
            }
        }
    }

    /// Whether it was never followed so far before.
    fn is_new(&mut self, scene: &Scene, left: usize) -> bool {
        let mut hasher = DefaultHasher::new();
        scene.situation().hash(&mut hasher);
        let before = self.seen.entry(hasher.finish()).or_insert(0);
        let is_new = *before < left;
        *before = left.max(*before);
        self.count.merged += u64::from(!is_new);
        is_new
    }
}
