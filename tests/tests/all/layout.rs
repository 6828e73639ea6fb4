//! `docs/layout.md` names every key, field and byte that scripts write, and no other.

use std::collections::BTreeSet;

use delayline_core::{Keyspace, Prefix, Shards};
use delayline_tests::{Contents, Dump};

use crate::rig::Rig;
use crate::scenario::{self, Scenario};

const PAGE: &str = include_str!("../../../docs/layout.md");

/// The cells of a section's table, without its head; names are without their ticks.
fn table(section: &str) -> Vec<Vec<String>> {
    let text =
        PAGE.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}")).1;
    let text = text.split("\n## ").next().unwrap_or_default();
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    let cell = |cell: &str| cell.trim().trim_matches('`').to_owned();
    rows.map(|row| row.trim_matches('|').split('|').map(cell).collect()).collect()
}

/// What each script leaves in each state of its queue.
fn dumps() -> Vec<Dump> {
    let mut rig = Rig::plain();
    let dumps = scenario::all().into_iter().map(|Scenario { prepare, .. }| {
        rig.store.clear();
        rig.reset();
        let command = prepare(&mut rig);
        let before = rig.store.dump();
        rig.run(&command);
        [before, rig.store.dump()]
    });
    dumps.flatten().collect()
}

fn is_session(field: &str) -> bool {
    let rest = field.strip_prefix('s').and_then(|rest| rest.get(11..));
    rest.is_some_and(|rest| {
        rest.starts_with(['p', 'r', 'c']) && rest[1..].bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[test]
fn the_page_names_every_key_and_its_type() {
    let keys = Keyspace::new(&Prefix::default(), Shards::default());
    let queue = "q".parse().expect("a name");
    let shard = keys.shard_keys(keys.shards().of(&queue));
    let all = [keys.config().to_owned()].into_iter().chain(shard).chain(keys.queue_keys(&queue));
    let tag = keys.tag(keys.shards().of(&queue)).to_owned();
    let shown = |key: String| key.replace(&tag, "<tag>:").replace("<tag>:q:", "<tag>:<queue>:");
    let there: BTreeSet<String> = all.map(shown).collect();
    let rows = table("Keys");
    let named: BTreeSet<String> = rows.iter().map(|row| row[0].clone()).collect();
    assert_eq!(named, there);
    let mut seen = BTreeSet::new();
    for (key, contents) in dumps().into_iter().flatten() {
        let kind = match contents {
            Contents::Hash(_) => "hash",
            Contents::Sorted(_) => "zset",
            Contents::Text(_) => "string",
            Contents::List(_) | Contents::Stream(_) => continue,
        };
        let Some((_, name)) = key.rsplit_once(':') else { continue };
        let row = rows.iter().find(|row| row[0].rsplit_once(':').is_some_and(|(_, known)| known == name));
        assert_eq!(row.map(|row| row[1].as_str()), Some(kind), "{key}");
        seen.insert(name.to_owned());
    }
    assert_eq!(seen.len(), rows.len(), "scenarios make every key: {seen:?}");
}

#[test]
fn the_page_names_every_field_of_meta() {
    let rows = table("Fields of `meta`");
    let named: BTreeSet<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let mut seen = BTreeSet::new();
    for (key, contents) in dumps().into_iter().flatten() {
        let Contents::Hash(fields) = contents else { continue };
        if !key.ends_with(":meta") {
            continue;
        }
        for field in fields.into_keys() {
            let field = String::from_utf8(field.to_vec()).expect("text");
            assert!(is_session(&field) || named.contains(field.as_str()), "{field} is not on the page");
            seen.insert(field);
        }
    }
    let sources: Vec<String> = delayline_lua::all().into_iter().map(delayline_lua::Script::source).collect();
    for row in &rows {
        let quoted = format!("'{}'", row[0]);
        let is_known = sources.iter().any(|source| source.contains(&quoted));
        assert!(is_known, "{quoted} is on the page, and in no script");
    }
    assert!(seen.iter().any(|field| is_session(field)));
}

#[test]
fn records_and_states_have_the_widths_of_the_page() {
    let widths = |section: &str| -> Vec<usize> {
        table(section).iter().filter_map(|row| row[0].parse().ok()).collect()
    };
    let cut = |text: &str, widths: &[usize]| -> Vec<String> {
        let mut rest = text;
        widths
            .iter()
            .map(|&width| {
                let (part, after) = rest.split_at(width);
                rest = after;
                part.to_owned()
            })
            .collect()
    };
    let (of_record, of_state) = (widths("A record"), widths("A state"));
    let (mut records, mut states) = (0, 0);
    for (key, contents) in dumps().into_iter().flatten() {
        let Contents::Hash(fields) = contents else { continue };
        for value in fields.into_values() {
            let text: String = value.iter().map(|&byte| char::from(byte.min(127))).collect();
            if key.ends_with(":pool") && text.starts_with("112") {
                let parts = cut(&text, &of_record);
                assert_eq!(parts[0], "1");
                assert_eq!(parts[1].parse::<usize>().ok(), Some(of_record.iter().sum()), "{text}");
                let metadata = usize::from_str_radix(&parts[2], 16).expect("hexadecimal");
                assert!(metadata + 12 <= text.len() && u8::from_str_radix(&parts[3], 16).is_ok(), "{text}");
                assert!(parts[4].parse::<u8>().is_ok() && parts[5].parse::<u16>().is_ok(), "{text}");
                records += 1;
            }
            if key.ends_with(":state") {
                let parts = cut(&text, &of_state);
                assert!("LWEX".contains(&parts[0]), "{text}");
                assert!(u8::from_str_radix(&parts[5], 16).is_ok(), "{text}");
                for part in [1, 2, 3, 4, 6, 7] {
                    assert!(parts[part].bytes().all(|byte| byte.is_ascii_digit()), "{text}: {}", parts[part]);
                }
                states += 1;
            }
        }
    }
    assert!(records > 100 && states > 100, "{records} records and {states} states were looked at");
}
