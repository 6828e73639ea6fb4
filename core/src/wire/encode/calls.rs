use delayline_lua::{self as lua, Script};

use super::{Args, Words};
use crate::{Command, Place};

/// The script of a command that callers ask for; `None` for others.
pub(super) fn script(command: &Command) -> Option<&'static Script> {
    Some(match command {
        Command::Publish { .. } => &lua::PUBLISH,
        Command::Cancel { .. } => &lua::CANCEL,
        Command::Reschedule { .. } => &lua::RESCHEDULE,
        Command::Requeue { .. } => &lua::REQUEUE,
        Command::Purge { .. } => &lua::PURGE,
        Command::Configure { .. } => &lua::CONFIGURE,
        Command::Pause { .. } => &lua::PAUSE,
        Command::Destroy { .. } => &lua::DESTROY,
        Command::Inspect { .. } => &lua::INSPECT,
        Command::List { .. } => &lua::LIST,
        Command::Stats { .. } => &lua::STATS,
        _ => return None,
    })
}

pub(super) fn write_args<A: Args>(command: &Command, words: &mut Words<'_, A>) {
    match command {
        Command::Publish { session, ceiling, jobs, .. } => {
            words.session('p', session);
            words.show(ceiling.jobs);
            words.show(ceiling.bytes);
            for job in jobs {
                words.arg(job.id.as_str());
                match &job.edit {
                    Some(edit) => words.due(&alloc::format!("e{} {} ", edit.record, edit.due), job.due),
                    None => words.due(if job.replace { "r" } else { "" }, job.due),
                }
                words.opt(job.edit.is_none_or(|edit| !edit.keeps_ttl).then_some(job.ttl_ms));
                words.out.record(&job.record);
            }
        }
        Command::Cancel { session, ids, .. } => {
            words.session('c', session);
            for id in ids {
                words.arg(id.as_str());
            }
        }
        Command::Reschedule { session, jobs, .. } => {
            words.session('c', session);
            for (id, due) in jobs {
                words.arg(id.as_str());
                words.due("", *due);
            }
        }
        Command::Requeue { dead, .. } | Command::Purge { dead, .. } => words.dead(dead),
        Command::Configure { cfgver, config, .. } => {
            words.opt(*cfgver);
            words.config(config);
        }
        Command::Pause { cfgver, paused, .. } => {
            words.opt(*cfgver);
            words.flag(*paused);
        }
        Command::Destroy { born, .. } => words.show(born),
        Command::Inspect { id, .. } => words.arg(id.as_str()),
        Command::List { place, limit, max_bytes, after, .. } => {
            words.arg(match place {
                Place::Ready => "ready",
                Place::Delayed => "delayed",
                Place::Leased => "leased",
                Place::Dead => "dead",
            });
            words.show(limit);
            words.show(max_bytes);
            words.opt(after.as_ref().map(|(at, _)| at));
            words.opt(after.as_ref().map(|(_, id)| id));
        }
        Command::Stats { hours, .. } => words.show(hours),
        _ => {}
    }
}
