use std::io::Write;

use delayline_core::wire::{Args, Form, encode};
use delayline_core::{Command, Keyspace, UnixMicros};

/// Commands that are sent together.
#[derive(Debug, Default)]
pub struct Pipeline {
    packed: Vec<u8>,
}

impl Pipeline {
    /// Adds a command of delayline, as of this time.
    pub fn command(&mut self, keys: &Keyspace, command: &Command, time: UnixMicros) {
        let mut words = Words::default();
        encode(keys, command, Form::Sha, Some(time), &mut words);
        self.begin(words.count);
        self.packed.extend(words.packed);
    }

    /// Adds any command.
    pub fn words<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.begin(words.len());
        for word in words {
            pack(word.as_ref(), &mut self.packed);
        }
    }

    /// All of it, as it is sent.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.packed)
    }

    fn begin(&mut self, count: usize) {
        let _ = write!(self.packed, "*{count}\r\n");
    }
}

#[derive(Default)]
struct Words {
    packed: Vec<u8>,
    count: usize,
}

impl Args for Words {
    fn arg(&mut self, bytes: &[u8]) {
        self.count += 1;
        pack(bytes, &mut self.packed);
    }
}

fn pack(word: &[u8], packed: &mut Vec<u8>) {
    let _ = write!(packed, "${}\r\n", word.len());
    packed.extend(word);
    packed.extend(b"\r\n");
}
