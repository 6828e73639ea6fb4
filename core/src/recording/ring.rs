use alloc::collections::VecDeque;
use alloc::vec::Vec;

const SMALLEST: usize = 64 << 10;
/// How many segments share the room of a ring.
const SEGMENTS: usize = 4;
/// The part of the room that is left in a segment when the next one is wished for.
const SPARE: usize = 32;

/// Where a recording goes.
pub trait Sink {
    /// Puts down bytes of a recording; `is_fresh` if a replay can begin with them. Answers whether bytes to begin with are
    /// wanted, as soon as there are any.
    fn put(&mut self, bytes: &[u8], is_fresh: bool) -> bool;
}

/// The latest part of a recording, in bounded memory.
///
/// It holds segments that each begin with a state of the engine. When it is full the oldest is forgotten, so it holds at
/// least the latest half of its room, unless a single state of the engine takes as much.
#[derive(Clone, Debug)]
pub struct Ring {
    room: usize,
    segments: VecDeque<Vec<u8>>,
    len: usize,
    /// How much was not kept, since it follows on nothing that is.
    missed: Option<usize>,
}

impl Ring {
    /// A ring of so many bytes, at least 64 KiB.
    pub fn new(bytes: usize) -> Ring {
        Ring { room: bytes.max(SMALLEST), segments: VecDeque::new(), len: 0, missed: None }
    }

    /// How many bytes it may hold.
    pub fn room(&self) -> usize {
        self.room
    }

    /// How many bytes it holds: never more than its room.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it holds, without what [`Recorded::header`](super::Recorded::header) begins a recording with.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.segments.iter().map(Vec::as_slice)
    }

    fn make_room(&mut self, bytes: usize, keep: usize) {
        while self.len + bytes > self.room && self.segments.len() > keep {
            self.len -= self.segments.pop_front().map_or(0, |oldest| oldest.len());
        }
    }
}

impl Sink for Ring {
    fn put(&mut self, bytes: &[u8], is_fresh: bool) -> bool {
        if is_fresh {
            self.make_room(bytes.len(), 0);
            self.missed = (bytes.len() > self.room).then_some(0);
            if self.missed.is_none() {
                if let Some(full) = self.segments.back_mut() {
                    full.shrink_to_fit();
                }
                let mut segment = Vec::with_capacity(bytes.len().max(self.room / SEGMENTS));
                segment.extend_from_slice(bytes);
                self.segments.push_back(segment);
                self.len += bytes.len();
            }
            return false;
        }
        if let Some(missed) = &mut self.missed {
            *missed = missed.saturating_add(bytes.len());
            return *missed >= self.room / SEGMENTS;
        }
        self.make_room(bytes.len(), 1);
        if self.len + bytes.len() > self.room {
            (self.segments, self.len, self.missed) = (VecDeque::new(), 0, Some(self.room));
            return true;
        }
        let Some(segment) = self.segments.back_mut() else { return true };
        segment.reserve_exact(bytes.len());
        segment.extend_from_slice(bytes);
        self.len += bytes.len();
        segment.len() + self.room / SPARE >= self.room / SEGMENTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 64 << 10;

    fn bytes(len: usize) -> Vec<u8> {
        alloc::vec![1; len]
    }

    fn begun(ring: &Ring) -> Vec<u8> {
        ring.segments().filter_map(|segment| segment.first().copied()).collect()
    }

    #[test]
    fn the_oldest_segment_goes_first_and_the_room_is_kept() {
        let mut ring = Ring::new(1);
        assert_eq!(ring.room(), ROOM);
        for number in 0..20 {
            ring.put(&[number; 100], true);
            while !ring.put(&[0; 50], false) {
                assert!(ring.len() <= ROOM);
            }
        }
        assert_eq!(begun(&ring), [16, 17, 18, 19]);
        let capacity: usize = ring.segments.iter().map(Vec::capacity).sum();
        assert!(ring.len() > ROOM / 2 && capacity <= ROOM, "{} in {capacity}", ring.len());
    }

    #[test]
    fn what_follows_on_nothing_is_not_kept() {
        let mut ring = Ring::new(ROOM);
        assert!(ring.put(&[0; 10], false), "a state is wished for");
        assert!(ring.is_empty());
        ring.put(&[1; 100], true);
        assert!(ring.put(&bytes(ROOM), false));
        assert!(ring.is_empty() && ring.put(&[3; 10], false) && ring.is_empty());
        assert!(!ring.put(&bytes(ROOM + 1), true) && ring.is_empty(), "a state that has no room");
        assert!(!ring.put(&[5; 10], false), "one is not made for each that follows");
        ring.put(&[6; 100], true);
        ring.put(&[7; 10], false);
        assert_eq!(ring.len(), 110);
    }
}
