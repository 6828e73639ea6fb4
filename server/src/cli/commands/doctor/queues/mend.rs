use delayline_tokio::redis::{Cmd, cmd};

/// The number of each of a queue's keys, as the scripts here count them.
pub(super) mod key {
    pub(in super::super) const AGENDA: &str = "1";
    pub(in super::super) const QUEUES: &str = "2";
    pub(in super::super) const META: &str = "3";
    pub(in super::super) const POOL: &str = "4";
    pub(in super::super) const STATE: &str = "7";
    pub(in super::super) const WAITING: &str = "10";
    /// Where [`Mend::beside`] sets something aside.
    pub(in super::super) const ASIDE: &str = "12";
}

const SCRIPT: &str = include_str!("mend.lua");

type Words = Vec<Vec<u8>>;

/// Writes that mend something, and the reads that must still answer what they were decided on: jobs move while the
/// doctor looks.
#[derive(Clone, Debug)]
pub(super) struct Mend {
    keys: Vec<String>,
    reads: Vec<(Words, Option<Vec<u8>>)>,
    writes: Vec<Words>,
}

impl Mend {
    /// Of these keys. The second word of every command is the number of one.
    pub(super) fn of(keys: &[String]) -> Mend {
        Mend { keys: keys.to_vec(), reads: Vec::new(), writes: Vec::new() }
    }

    /// And of this one, after the eleven.
    pub(super) fn beside(mut self, aside: &str) -> Mend {
        self.keys.push(aside.to_owned());
        self
    }

    /// Only if this is still the answer.
    pub(super) fn only_if(mut self, words: &[&[u8]], answer: Option<&[u8]>) -> Mend {
        self.reads.push((owned(words), answer.map(<[u8]>::to_vec)));
        self
    }

    pub(super) fn write(mut self, words: &[&[u8]]) -> Mend {
        self.writes.push(owned(words));
        self
    }

    /// A key of a wrong type goes out of the way under another name, with all it holds.
    pub(super) fn set_aside(key: &str, kind: &str, aside: String) -> Mend {
        Mend::of(&[key.to_owned(), aside])
            .only_if(&[b"TYPE", b"1"], Some(kind.as_bytes()))
            .only_if(&[b"EXISTS", b"2"], Some(b"0"))
            .write(&[b"RENAME", b"1", b"2"])
    }

    pub(super) fn command(&self) -> Cmd {
        let mut eval = cmd("EVAL");
        eval.arg(SCRIPT).arg(self.keys.len()).arg(&self.keys).arg(self.reads.len());
        for (words, answer) in &self.reads {
            eval.arg(words.len()).arg(words);
            match answer {
                None => eval.arg("-"),
                Some(answer) => eval.arg([b"=", &answer[..]].concat()),
            };
        }
        for words in &self.writes {
            eval.arg(words.len()).arg(words);
        }
        eval
    }
}

fn owned(words: &[&[u8]]) -> Words {
    words.iter().map(|word| word.to_vec()).collect()
}
