use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use delayline_core::UnixMs;

/// A sorted set of Redis: each member has a score, and the order is by score, then by member.
#[derive(Clone, Debug)]
pub(crate) struct Zset<M, S = UnixMs> {
    /// The members are never `None`: that is what a range from a score begins with.
    order: BTreeSet<(S, Option<M>)>,
    scores: BTreeMap<M, S>,
}

impl<M, S> Default for Zset<M, S> {
    fn default() -> Zset<M, S> {
        Zset { order: BTreeSet::new(), scores: BTreeMap::new() }
    }
}

impl<M: Ord + Clone, S: Ord + Copy> Zset<M, S> {
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    pub(crate) fn score(&self, member: &M) -> Option<S> {
        self.scores.get(member).copied()
    }

    pub(crate) fn contains(&self, member: &M) -> bool {
        self.scores.contains_key(member)
    }

    /// Adds the member, or changes its score.
    pub(crate) fn insert(&mut self, member: M, score: S) {
        if let Some(old) = self.scores.insert(member.clone(), score) {
            self.order.remove(&(old, Some(member.clone())));
        }
        self.order.insert((score, Some(member)));
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, member: &M) -> bool {
        let Some(score) = self.scores.remove(member) else {
            return false;
        };
        self.order.remove(&(score, Some(member.clone())))
    }

    pub(crate) fn pop_first(&mut self) -> Option<M> {
        let (_, member) = self.order.pop_first()?;
        member.inspect(|member| {
            self.scores.remove(member);
        })
    }

    pub(crate) fn first_score(&self) -> Option<S> {
        self.order.first().map(|(score, _)| *score)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&M, S)> {
        self.order.iter().filter_map(with_score)
    }

    /// Those with this score or a lower one, the lowest first.
    pub(crate) fn up_to(&self, score: S) -> impl Iterator<Item = (&M, S)> {
        self.iter().take_while(move |(_, at)| *at <= score)
    }

    /// Those with this score or a higher one.
    pub(crate) fn since(&self, score: S) -> impl Iterator<Item = (&M, S)> {
        self.order.range((score, None)..).filter_map(with_score)
    }

    /// Those that come after this member at this score, whether or not it is there.
    pub(crate) fn after(&self, score: S, member: M) -> impl Iterator<Item = (&M, S)> {
        self.order.range((Excluded((score, Some(member))), Unbounded)).filter_map(with_score)
    }
}

fn with_score<M, S: Copy>((score, member): &(S, Option<M>)) -> Option<(&M, S)> {
    member.as_ref().map(|member| (member, *score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_by_score_then_member() {
        let mut zset: Zset<&str, u64> = Zset::default();
        for (member, score) in [("b", 2), ("a", 2), ("c", 1), ("a", 3), ("d", 3)] {
            zset.insert(member, score);
        }
        let all: Vec<_> = zset.iter().map(|(member, score)| (*member, score)).collect();
        assert_eq!(all, [("c", 1), ("b", 2), ("a", 3), ("d", 3)]);
        assert_eq!(zset.up_to(2).count(), 2);
        assert_eq!(zset.since(3).count(), 2);
        assert_eq!(zset.after(3, "a").map(|(member, _)| *member).collect::<Vec<_>>(), ["d"]);
        assert!(zset.remove(&"b") && !zset.remove(&"b"));
        assert_eq!((zset.pop_first(), zset.len(), zset.first_score()), (Some("c"), 2, Some(3)));
    }
}
