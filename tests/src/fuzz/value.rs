use bytes::Bytes;
use delayline_core::wire::Value;
use delayline_core::{Compression, Kind, Place, Record};

use super::input::Input;

/// Every kind of command.
pub(super) const KINDS: [Kind; 22] = [
    Kind::Open,
    Kind::Server,
    Kind::Publish,
    Kind::Reserve,
    Kind::Settle,
    Kind::Extend,
    Kind::Cancel,
    Kind::Reschedule,
    Kind::Peek,
    Kind::Tend,
    Kind::Requeue,
    Kind::Purge,
    Kind::Configure,
    Kind::Pause,
    Kind::Destroy,
    Kind::Inspect,
    Kind::List(Place::Ready),
    Kind::List(Place::Delayed),
    Kind::List(Place::Leased),
    Kind::List(Place::Dead),
    Kind::Stats,
    Kind::Queues,
];

/// A reply to a command of this kind, of the right form but for what the input damages.
///
/// In a form `s` is a status, `n` a number, `m` one that may be missing, `l` outcomes, `f` a flag, `i` an id, `q` a queue,
/// `e` an engine, `b` a backoff, `x` a text, `d` a destination, `R` a record, `S` a state, and what is in brackets an
/// array; `*` after one repeats it.
pub(super) fn value(kind: Kind, input: &mut Input<'_>) -> Value {
    let form = match kind {
        Kind::Server => return text("redis_version:7.2.4\r\nmaxmemory_policy:noeviction\r\n"),
        Kind::Open => "snnnx",
        Kind::Publish => "snnlnnnnn",
        Kind::Reserve => "snnnb[i*][n*][R*][S*]mf",
        Kind::Settle => "sml",
        Kind::Extend => "snln",
        Kind::Cancel => "snl",
        Kind::Reschedule => "snl[n*]",
        Kind::Peek => "snen[q*][n*][m*]",
        Kind::Tend => "snnnnnmfd",
        Kind::Requeue | Kind::Purge => "snnnnl",
        Kind::Configure => "snnmbmxmmd",
        Kind::Pause => "snnf",
        Kind::Destroy => "snnnn",
        Kind::Inspect => "snixnSmR",
        Kind::List(_) => "sn[i*][n*][S*][R*]f",
        Kind::Stats => "sn[mmmfmbmxmmdxmmmmmmmmmmmmmmmmmm]nnnnm[n*]",
        Kind::Queues => "n[i*]",
    };
    let (mut arrays, mut count) = (vec![Vec::new()], 0);
    let mut form = form.chars().peekable();
    while let Some(letter) = form.next() {
        match letter {
            '[' => {
                count = if arrays[0].len() < 6 && count == 0 { input.below(5) } else { count };
                arrays.push(Vec::new());
            }
            ']' => {
                let array = arrays.pop().unwrap_or_default();
                arrays.last_mut().expect("a bracket opens first").push(Value::Array(array));
            }
            letter => {
                let times = if form.next_if_eq(&'*').is_some() { count } else { 1 };
                let words = (0..times).map(|_| word(letter, input)).collect::<Vec<_>>();
                arrays.last_mut().expect("a bracket opens first").extend(words);
            }
        }
    }
    Value::Array(arrays.swap_remove(0))
}

fn word(letter: char, input: &mut Input<'_>) -> Value {
    if input.once_in(48) {
        return any(input, 2);
    }
    match letter {
        's' => text(input.pick(&[
            "ok",
            "ok",
            "again",
            "full",
            "moved",
            "closed",
            "conflict",
            "superseded",
            "gone",
        ])),
        'm' | 'e' | 'd' if input.once_in(2) => text(""),
        'l' => {
            let letters =
                (0..input.below(8)).map(|_| input.pick(&['o', 'n', 'g', 'd', 'r', 'e', 's', 'l', 'f', 'x']));
            Value::Bytes(Bytes::from(letters.collect::<String>()))
        }
        'f' => Value::Int(input.flag().into()),
        'i' => Value::Bytes(Bytes::from(format!("{}", input.below(9)))),
        'q' => Value::Bytes(Bytes::from(format!("q{}", input.pick(&["a", "b", "c", ""])))),
        'e' => text(input.pick(&["---------0R-", "-----------", "zzzzzzzzzzz", "x"])),
        'b' => text(input.pick(&["", "none", "fixed 5s", "exponential 1s..1h jitter 10%", "1s 2s", "never"])),
        'x' => text(input.pick(&["", "dead", "leased", "delayed", "x"])),
        'd' => text(input.pick(&["list:work", "stream:work", "work"])),
        'R' => Value::Bytes(record(input)),
        'S' => Value::Bytes(Bytes::from(state(input))),
        _ => match i64::try_from(input.number()) {
            Ok(number) if input.flag() => Value::Int(number),
            Ok(number) => Value::Bytes(Bytes::from(number.to_string())),
            Err(_) => Value::Bytes(Bytes::from(u64::MAX.to_string())),
        },
    }
}

fn record(input: &mut Input<'_>) -> Bytes {
    if input.once_in(8) {
        return Bytes::copy_from_slice(input.bytes(40));
    }
    let record = Record { body: Bytes::copy_from_slice(input.bytes(16)), ..Record::default() };
    record.encode(Compression::Over { bytes: 4 }).expect("a plain record").to_bytes()
}

fn state(input: &mut Input<'_>) -> String {
    let (letter, fence) = (input.pick(&['L', 'L', 'W', 'E', 'X', '?']), input.number() % 10_u64.pow(16));
    format!("{letter}{fence:016}00010010000100176370000000000{}", input.text(6))
}

/// Any value, its arrays so deep at most.
pub(super) fn any(input: &mut Input<'_>, deep: u8) -> Value {
    match input.below(if deep == 0 { 4 } else { 5 }) {
        0 => Value::Nil,
        1 => Value::Int(i64::from_ne_bytes(input.number().to_ne_bytes())),
        2 => Value::Bytes(Bytes::copy_from_slice(input.bytes(60))),
        3 => Value::Error(format!(
            "{} {}",
            input.pick(&["NOSCRIPT", "OOM", "READONLY", "ERR", "NOPERM", "LOADING"]),
            input.text(20)
        )),
        _ => Value::Array((0..input.below(6)).map(|_| any(input, deep - 1)).collect()),
    }
}

fn text(text: &'static str) -> Value {
    Value::Bytes(Bytes::from_static(text.as_bytes()))
}
