mod calls;
mod delivery;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use delayline_lua::Script;
use serde::{Deserialize, Serialize};

use crate::keyspace::Keyspace;
use crate::{Command, DeadLetters, Due, Forward, QueueConfig, Session, Settlement, UnixMicros};

/// The version of the layout that [`Command::Open`] fixes.
pub const LAYOUT: u32 = 1;

/// How a deployment says that it has this layout. What was written before the layout was settled says `1`.
#[doc(hidden)]
pub const LAYOUT_TEXT: &str = "1.0";

/// The layout of which a deployment says this; 0 is the one from before it was settled.
#[doc(hidden)]
pub fn read_layout(text: &str) -> Option<u32> {
    if text == "1" { Some(0) } else { text.strip_suffix(".0")?.parse().ok() }
}

/// Takes the words of a command, one by one.
pub trait Args {
    /// The next word.
    fn arg(&mut self, bytes: &[u8]);

    /// The next word is a record in its plain form; a sink that cannot carry all bytes armours it.
    fn record(&mut self, record: &[u8]) {
        self.arg(record);
    }
}

/// How a script is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// By its SHA-1: EVALSHA.
    #[default]
    Sha,
    /// By its source: EVAL, after the server did not know the SHA-1.
    Source,
}

/// Writes a command. `clock` replaces the server's clock in tests; production passes `None`.
pub fn encode(
    keys: &Keyspace,
    command: &Command,
    form: Form,
    clock: Option<UnixMicros>,
    out: &mut impl Args,
) {
    let mut words = Words { out, text: String::new() };
    if let Command::Server = command {
        words.arg("INFO");
    } else if let Command::Queues { shard, cursor, count } = command {
        words.arg("HSCAN");
        words.arg(&keys.shard_keys(*shard)[1]);
        words.show(cursor);
        words.arg("COUNT");
        words.show(count);
    } else if let Some(script) = calls::script(command) {
        words.call(script, form, keys, command, clock);
        calls::write_args(command, &mut words);
    } else {
        encode_delivery(keys, command, form, clock, out);
    }
}

/// The same for the commands that delivering takes; of another it writes nothing.
pub(super) fn encode_delivery(
    keys: &Keyspace,
    command: &Command,
    form: Form,
    clock: Option<UnixMicros>,
    out: &mut impl Args,
) {
    let mut words = Words { out, text: String::new() };
    if let Some(script) = delivery::script(command) {
        words.call(script, form, keys, command, clock);
        delivery::write_args(command, &mut words);
    }
}

fn write_keys<A: Args>(keys: &Keyspace, command: &Command, words: &mut Words<'_, A>) {
    match command {
        Command::Open { .. } => words.keys(&[keys.config()]),
        Command::Peek { shard, queues, .. } => {
            let dues = queues.iter().map(|queue| keys.due_key(queue));
            words.keys(&keys.shard_keys(*shard).into_iter().chain(dues).collect::<Vec<_>>());
        }
        Command::Tend { queue, forward: Some(forward), .. }
        | Command::Configure { queue, config: QueueConfig { forward: Some(forward), .. }, .. } => {
            let (Forward::List(to) | Forward::Stream(to)) = forward;
            words.show(12);
            for key in keys.queue_keys(queue) {
                words.arg(&key);
            }
            words.arg(to);
        }
        _ => {
            if let Some(queue) = command.queue() {
                words.keys(&keys.queue_keys(queue));
            }
        }
    }
}

struct Words<'a, A> {
    out: &'a mut A,
    text: String,
}

impl<A: Args> Words<'_, A> {
    fn arg(&mut self, text: &str) {
        self.out.arg(text.as_bytes());
    }

    fn show(&mut self, value: impl core::fmt::Display) {
        self.text.clear();
        let _ = write!(self.text, "{value}");
        self.out.arg(self.text.as_bytes());
    }

    fn opt(&mut self, value: Option<impl core::fmt::Display>) {
        match value {
            Some(value) => self.show(value),
            None => self.arg(""),
        }
    }

    fn flag(&mut self, on: bool) {
        self.arg(if on { "1" } else { "" });
    }

    /// All that stands before the command's own arguments.
    fn call(
        &mut self,
        script: &'static Script,
        form: Form,
        keys: &Keyspace,
        command: &Command,
        clock: Option<UnixMicros>,
    ) {
        self.script(script, form);
        write_keys(keys, command, self);
        self.opt(clock);
    }

    fn script(&mut self, script: &'static Script, form: Form) {
        match form {
            Form::Sha => {
                self.arg("EVALSHA");
                self.arg(script.sha1());
            }
            Form::Source => {
                self.arg("EVAL");
                self.arg(&script.source());
            }
        }
    }

    fn keys(&mut self, keys: &[impl AsRef<str>]) {
        self.show(keys.len());
        for key in keys {
            self.arg(key.as_ref());
        }
    }

    fn session(&mut self, verb: char, session: &Session) {
        self.show(format_args!("s{}{verb}{}", session.engine, session.lane));
        self.show(session.sequence);
    }

    fn due(&mut self, mark: &str, due: Due) {
        match due {
            Due::After { ms } => self.show(format_args!("{mark}+{ms}")),
            Due::At(at) => self.show(format_args!("{mark}{at}")),
        }
    }

    fn settlement(&mut self, settlement: &Settlement) {
        let (verdict, after_ms, reason) = match settlement {
            Settlement::Ack => ("A", 0, ""),
            Settlement::Nack { after_ms, reason } => ("N", *after_ms, reason.as_str()),
            Settlement::Snooze { after_ms } => ("S", *after_ms, ""),
            Settlement::Release { after_ms } => ("R", *after_ms, ""),
            Settlement::Bury { reason } => ("B", 0, reason.as_str()),
        };
        self.arg(verdict);
        self.show(after_ms);
        self.arg(reason);
    }

    fn dead(&mut self, dead: &DeadLetters) {
        self.arg(if dead.ids.is_some() { "ids" } else { "all" });
        self.opt(dead.until);
        self.show(dead.limit);
        dead.ids.iter().flatten().for_each(|id| self.arg(id.as_str()));
    }

    fn config(&mut self, config: &QueueConfig) {
        self.opt(config.attempts);
        self.opt(config.backoff.as_ref());
        self.opt(config.retention_ms);
        self.arg(if config.bury_expired { "dead" } else { "" });
        self.opt(config.max_jobs);
        self.opt(config.max_bytes);
        self.opt(config.forward.as_ref().map(ToString::to_string));
        self.opt(config.push.as_ref());
    }
}
