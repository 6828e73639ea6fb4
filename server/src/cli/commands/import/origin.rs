use delayline_tokio::redis::Cmd;

/// Where elements are in the Redis of the old system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In a list whose oldest element is at this end.
    List { key: Vec<u8>, oldest: End },
    /// In a sorted set.
    Sorted { key: Vec<u8> },
    /// In a sorted set, and once more in a list, by age.
    SortedAndListed { key: Vec<u8>, list: Vec<u8> },
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Head,
    Tail,
}

impl Origin {
    /// `list` or `sorted`, as the scripts call it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Origin::List { .. } => "list",
            Origin::Sorted { .. } | Origin::SortedAndListed { .. } => "sorted",
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        match self {
            Origin::List { key, .. } | Origin::Sorted { key } | Origin::SortedAndListed { key, .. } => key,
        }
    }

    /// Begins a call of a script that takes elements from here, or puts them back.
    pub(super) fn arguments(&self, eval: &mut Cmd, first: [&str; 2], token: &str, lock_ms: u64) {
        let keys = first.len() + 1 + usize::from(matches!(self, Origin::SortedAndListed { .. }));
        eval.arg(keys).arg(&first).arg(self.key());
        if let Origin::SortedAndListed { list, .. } = self {
            eval.arg(list);
        }
        let end = match self {
            Origin::List { oldest: End::Tail, .. } => -1,
            _ => 1,
        };
        eval.arg(token).arg(lock_ms).arg(self.kind()).arg(end);
    }
}
