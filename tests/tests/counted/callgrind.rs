use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The functions by which programs ask for memory.
const ALLOCATING: [&str; 6] = ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign"];

/// What a program did while it was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Instructions outside of the kernel.
    pub(crate) instructions: u64,
    /// How often memory was asked for.
    pub(crate) allocations: u64,
}

/// The words before a program that is to be watched; what it did is written to `out`.
pub(crate) fn watching(out: &Path) -> Vec<OsString> {
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(out);
    vec![valgrind().into(), "--tool=callgrind".into(), "--compress-strings=no".into(), file]
}

/// Runs a program to its end, and counts.
pub(crate) fn count(program: &Path, arguments: &[&str], out: &Path) -> Counted {
    let watching = watching(out);
    let mut command = Command::new(&watching[0]);
    let ended = command.args(&watching[1..]).arg(program).args(arguments).output().expect("valgrind starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{} {arguments:?} under valgrind: {said}", program.display());
    read(out)
}

/// Reads what callgrind has written.
pub(crate) fn read(out: &Path) -> Counted {
    let text = fs::read(out).unwrap_or_else(|why| panic!("{}: {why}", out.display()));
    parse(&String::from_utf8_lossy(&text)).unwrap_or_else(|| panic!("{} has no total", out.display()))
}

fn parse(text: &str) -> Option<Counted> {
    let (mut callee, mut counted) = ("", Counted { instructions: 0, allocations: 0 });
    let mut has_total = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            callee = name;
        } else if let Some(rest) = line.strip_prefix("calls=") {
            let calls = rest.split(' ').next()?.parse::<u64>().ok()?;
            counted.allocations += if ALLOCATING.contains(&callee) { calls } else { 0 };
        } else if let Some(total) = line.strip_prefix("totals: ") {
            counted.instructions = total.trim().parse().ok()?;
            has_total = true;
        }
    }
    has_total.then_some(counted)
}

fn valgrind() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|place| place.join("valgrind")).find(|program| program.is_file());
    found
        .expect("these tests need valgrind, which counts instructions: install it (apt-get install valgrind)")
}

#[test]
fn the_totals_and_the_calls_of_allocators_are_read() {
    let text = "version: 1\nfn=main\n1 20\ncob=libc\ncfi=???\ncfn=malloc\ncalls=3 0\n1 40\ncfn=free\ncalls=9 0\n1 2\n\
                cfn=realloc\ncalls=2 7\n\ntotals: 4711\n";
    assert_eq!(parse(text), Some(Counted { instructions: 4711, allocations: 5 }));
    assert_eq!(parse("version: 1\n"), None);
}
