//! What the README shows. Its programs are run as documentation tests.

const README: &str = include_str!("../../../README.md");

#[test]
fn the_first_program_is_short() {
    let program =
        README.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let lines = program.lines().count();
    assert!((5..=20).contains(&lines), "{lines} lines");
}
