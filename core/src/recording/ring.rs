use alloc::collections::VecDeque;
use alloc::vec::Vec;

const SMALLEST: usize = 64 << 10;
/// How many segments share the room of a ring.
const SEGMENTS: usize = 4;

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
    is_cut: bool,
}

impl Ring {
    /// A ring of so many bytes, at least 64 KiB.
    pub fn new(bytes: usize) -> Ring {
        Ring { room: bytes.max(SMALLEST), segments: VecDeque::new(), len: 0, is_cut: false }
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
            self.is_cut = self.len + bytes.len() > self.room;
            if !self.is_cut {
                let mut segment = Vec::with_capacity(self.room / SEGMENTS);
                segment.extend_from_slice(bytes);
                self.segments.push_back(segment);
                self.len += bytes.len();
            }
            return false;
        }
        if self.is_cut {
            return true;
        }
        self.make_room(bytes.len(), 1);
        if self.len + bytes.len() > self.room {
            // What comes next would follow on nothing.
            (self.segments, self.len, self.is_cut) = (VecDeque::new(), 0, true);
            return true;
        }
        let Some(segment) = self.segments.back_mut() else { return true };
        segment.extend_from_slice(bytes);
        self.len += bytes.len();
        segment.len() >= self.room / SEGMENTS
    }
}
