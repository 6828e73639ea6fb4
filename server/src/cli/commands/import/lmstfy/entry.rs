use super::super::origin::{End, Origin};
use super::super::report::Place;
use super::handle::Handle;
use super::walk::TIMERS;

/// An element of lmstfy's, as it was found or as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) handle: Handle,
    /// The bytes that lmstfy has.
    pub(super) element: Vec<u8>,
    pub(super) due_ms: u64,
}

impl Found {
    /// What the journal keeps of it: a letter for its place, then the handle as the timer set would have it.
    pub(super) fn entry(&self) -> Vec<u8> {
        let letter = match self.place {
            Place::Ready => b'r',
            Place::Dead => b'x',
            Place::Delayed | Place::Journal => b'd',
        };
        [&[letter], &*self.handle.to_timer()].concat()
    }

    /// Reads an entry of the journal.
    pub(super) fn of_entry(entry: &[u8], due_ms: u64) -> Result<Found, &'static str> {
        let (letter, member) = entry.split_first().ok_or("it is empty")?;
        let handle = Handle::of_timer(member)?;
        let (place, element) = match letter {
            b'r' => (Place::Ready, handle.to_list()),
            b'x' => (Place::Dead, handle.to_list()),
            b'd' => (Place::Delayed, member.to_vec()),
            _ => return Err("it is not an entry of an import"),
        };
        Ok(Found { place, handle, element, due_ms })
    }

    /// The score of a member of the timer set, which counts seconds; a list has none.
    pub(super) fn score(&self) -> Vec<u8> {
        match self.place {
            Place::Delayed | Place::Journal => (self.due_ms / 1_000).to_string().into_bytes(),
            Place::Ready | Place::Dead => Vec::new(),
        }
    }

    pub(super) fn origin(&self) -> Origin {
        let Handle { namespace, queue, .. } = &self.handle;
        let list = |letter| Origin::List {
            key: format!("{letter}/{namespace}/{queue}").into_bytes(),
            oldest: End::Tail,
        };
        match self.place {
            Place::Ready => list('q'),
            Place::Dead => list('d'),
            Place::Delayed | Place::Journal => Origin::Sorted { key: TIMERS.as_bytes().to_vec() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_where_its_element_was() {
        let handle = Handle { namespace: "ns".into(), queue: "q".into(), tries: 2, id: "1".into() };
        for (place, element) in [
            (Place::Ready, handle.to_list()),
            (Place::Dead, handle.to_list()),
            (Place::Delayed, handle.to_timer()),
        ] {
            let found = Found { place, handle: handle.clone(), element, due_ms: 5_000 };
            assert_eq!(Found::of_entry(&found.entry(), 5_000), Ok(found));
        }
        assert!(Found::of_entry(b"", 0).is_err());
        assert!(Found::of_entry(b"zx", 0).is_err());
    }
}
