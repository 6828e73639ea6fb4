use delayline_lua::{self as lua, Script};

use super::{Args, LAYOUT_TEXT, Words};
use crate::Command;

/// The script of a command that delivering takes; `None` for others.
pub(super) fn script(command: &Command) -> Option<&'static Script> {
    Some(match command {
        Command::Open { .. } => &lua::OPEN,
        Command::Reserve { .. } => &lua::RESERVE,
        Command::Settle { .. } => &lua::SETTLE,
        Command::Extend { .. } => &lua::EXTEND,
        Command::Peek { .. } => &lua::PEEK,
        Command::Tend { .. } => &lua::TEND,
        _ => return None,
    })
}

pub(super) fn write_args<A: Args>(command: &Command, words: &mut Words<'_, A>) {
    match command {
        Command::Open { shards } => {
            words.arg(LAYOUT_TEXT);
            words.show(shards.count());
        }
        Command::Reserve { session, count, lease_ms, max_bytes, wakeable, .. } => {
            words.session('r', session);
            words.show(count);
            words.show(lease_ms);
            words.show(max_bytes);
            words.opt((*wakeable || *count == 0).then_some(session.engine));
        }
        Command::Settle { tidy, leases, .. } => {
            words.flag(*tidy);
            for (id, fence, settlement) in leases {
                words.arg(id.as_str());
                words.show(fence);
                words.settlement(settlement);
            }
        }
        Command::Extend { lease_ms, leases, .. } => {
            words.show(lease_ms);
            for (id, fence) in leases {
                words.arg(id.as_str());
                words.show(fence);
            }
        }
        Command::Peek { engine, entries, lease_ms, stay, .. } => {
            words.show(engine);
            words.show(entries);
            words.show(lease_ms);
            words.flag(*stay);
        }
        Command::Tend { limit, .. } => words.show(limit),
        _ => {}
    }
}
