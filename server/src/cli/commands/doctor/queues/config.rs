use delayline_core::wire::{LAYOUT, LAYOUT_TEXT, read_layout};
use delayline_core::{Keyspace, Prefix, Shards, UnixMicros};
use delayline_tokio::redis::cmd;

use super::super::wire::Wire;
use super::fault::Fault;
use super::judge::Judge;
use super::mend::Mend;
use super::names::Names;
use super::whole;

const PLACE: &str = "deployment";

/// What the config of a deployment ought to say.
pub(super) enum Config {
    /// It says how many shards there are, or would once mended.
    Fixed(Shards),
    /// Nothing is there yet.
    Unopened,
    /// It cannot be told.
    Unknown,
}

/// Looks at the key that fixes layout and number of shards. The keys that there are tell what it said before.
pub(super) async fn examine(
    wire: &mut Wire,
    judge: &mut Judge,
    prefix: &Prefix,
    names: &Names,
    now: UnixMicros,
) -> Result<Config, String> {
    let key = format!("{{{prefix}}}:config");
    let kind: String = wire.ask(cmd("TYPE").arg(&key)).await?;
    let found: Vec<Option<String>> = match &*kind {
        "hash" => wire.ask(cmd("HMGET").arg(&key).arg(&["layout", "shards"])).await?,
        _ => Vec::new(),
    };
    let field = |i: usize| found.get(i).cloned().flatten();
    let (layout, count) = (field(0), field(1));
    let shards =
        count.as_deref().and_then(whole).and_then(|count| u16::try_from(count).ok()).and_then(Shards::new);
    if let Some(layout) = layout.as_deref().and_then(read_layout).filter(|layout| *layout != LAYOUT) {
        let subject = format!("{layout}, this is a doctor for {LAYOUT}");
        let problem = if layout > LAYOUT {
            "its layout is a newer one: upgrade"
        } else {
            "an unreleased version made it, before layout 1 was settled: use another prefix, or remove its keys"
        };
        judge.found(PLACE, problem, subject, String::new());
        return Ok(Config::Unknown);
    }
    if let (Some(shards), Some(true)) = (shards, layout.map(|layout| layout == LAYOUT_TEXT)) {
        if let Some(tag) = names.strange(&Keyspace::new(prefix, shards)) {
            let problem = format!("it has {} shards, but keys that are not of those", shards.count());
            judge.found(PLACE, &problem, tag, String::new());
        }
        return Ok(Config::Fixed(shards));
    }
    if kind == "none" && names.is_empty() {
        return Ok(Config::Unopened);
    }
    let Some(shards) = shards.or_else(|| names.shards(prefix)) else {
        judge.found(PLACE, "its number of shards is lost, and the keys do not tell it", key, String::new());
        return Ok(Config::Unknown);
    };
    let (count, layout) = (shards.count().to_string(), LAYOUT_TEXT);
    let aside = format!("{{{prefix}}}:broken:{}:config", now.0);
    let mut mend = Mend::of(&[key.clone(), aside.clone()]).only_if(&[b"TYPE", b"1"], Some(kind.as_bytes()));
    for (name, was) in ["layout", "shards"].into_iter().zip(&found) {
        mend = mend.only_if(&[b"HGET", b"1", name.as_bytes()], was.as_ref().map(String::as_bytes));
    }
    if !matches!(&*kind, "hash" | "none") {
        mend = mend.write(&[b"RENAME", b"1", b"2"]);
    }
    mend = mend.write(&[b"HSET", b"1", b"layout", layout.as_bytes(), b"shards", count.as_bytes()]);
    let problem = "the key that fixes layout and number of shards is lost or broken".to_owned();
    let change = format!("set layout to {layout} and shards to {count}, as the keys have it");
    judge.take(wire, PLACE, Fault::new(problem, key, change, mend)).await;
    Ok(Config::Fixed(shards))
}
