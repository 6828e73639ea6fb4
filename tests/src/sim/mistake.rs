use std::fmt;
use std::str::FromStr;

use super::Bug;

/// A mistake that is planted to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// In the store, or in the scripts.
    Store(Bug),
    /// In what drives the engines.
    Driver(Slip),
}

/// A mistake of a driver, which no store can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slip {
    /// A connection on which Redis refuses writes is kept.
    DemotedKept,
    /// A take that nobody answered is told that there are no jobs.
    TakeAnsweredUnasked,
    /// The handlers of an engine that panicked are not told.
    PanicUntold,
    /// An answer that makes no sense is the end of the engine, and of what it holds.
    NonsenseEnds,
}

impl Slip {
    /// All there are.
    pub const ALL: [Slip; 4] =
        [Slip::DemotedKept, Slip::TakeAnsweredUnasked, Slip::PanicUntold, Slip::NonsenseEnds];

    /// Its name in kebab case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Slip::DemotedKept => "demoted-kept",
            Slip::TakeAnsweredUnasked => "take-answered-unasked",
            Slip::PanicUntold => "panic-untold",
            Slip::NonsenseEnds => "nonsense-ends",
        }
    }
}

impl Mistake {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Mistake> {
        Bug::ALL.into_iter().map(Mistake::Store).chain(Slip::ALL.into_iter().map(Mistake::Driver))
    }

    pub(super) fn of_store(self) -> Option<Bug> {
        match self {
            Mistake::Store(bug) => Some(bug),
            Mistake::Driver(_) => None,
        }
    }

    pub(super) fn of_driver(self) -> Option<Slip> {
        match self {
            Mistake::Store(_) => None,
            Mistake::Driver(slip) => Some(slip),
        }
    }
}

impl From<Bug> for Mistake {
    fn from(bug: Bug) -> Mistake {
        Mistake::Store(bug)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mistake::Store(bug) => bug.name(),
            Mistake::Driver(slip) => slip.name(),
        })
    }
}

impl FromStr for Mistake {
    type Err = String;

    fn from_str(name: &str) -> Result<Mistake, String> {
        let named = Mistake::all().find(|mistake| mistake.to_string() == name);
        named.ok_or_else(|| format!("there is no bug {name:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_of_one_mistake() {
        for mistake in Mistake::all() {
            assert_eq!(mistake.to_string().parse(), Ok(mistake));
        }
        assert!("no-such-bug".parse::<Mistake>().is_err());
    }
}
