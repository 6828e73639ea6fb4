//! The npm package as its users have it: built, packed, installed in an empty project, and used by Node, TypeScript,
//! workerd and a browser against `delayline rest` in front of a real Redis.
#![allow(missing_docs)]

mod project;

use std::env;
use std::fs;
use std::path::Path;

use delayline_npm::{Failure, package};
use delayline_tests::edge::{Rest, missing, workerd};
use delayline_tests::{RedisServer, report};
use project::Project;

const TYPESCRIPT: &str = "typescript@7.0.2";
/// What runs the README's example, with which arguments; only Node must be there.
const RUNTIMES: [(&str, &[&str]); 3] = [("node", &[]), ("bun", &["run"]), ("deno", &["run", "--allow-all"])];

#[test]
fn the_package_does_what_it_says_wherever_javascript_runs() {
    let Some(project) = project() else { return };
    let redis = RedisServer::plain();
    let rest = Rest::start(env!("CARGO_BIN_EXE_service"), &redis);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../driver-wasm/npm/test");
    project.copy(&tests);
    project.write("readme.mjs", &example());
    let mut types = project.command("node_modules/.bin/tsc");
    Project::run(types.args(["--project", "tsconfig.json"]));
    let mut node = project.command("node");
    // One file after the other: planned faults befall whoever asks next.
    node.args(["--test", "--test-concurrency=1"]);
    node.env("DELAYLINE_REST_URL", rest.url()).env("DELAYLINE_REST_TOKEN", rest.token());
    node.env("DELAYLINE_REDIS_URL", redis.url()).env("DELAYLINE_CLI", env!("CARGO_BIN_EXE_service"));
    if let Some(workerd) = workerd() {
        node.env("DELAYLINE_WORKERD", workerd.path());
    }
    match browser() {
        Some(browser) => _ = node.env("DELAYLINE_BROWSER", browser),
        None => report("left out: there is no chromium"),
    }
    let told = Project::run(&mut node);
    told.lines().filter(|line| line.contains("# SKIP") || line.starts_with("# pass")).for_each(report);
    for (program, arguments) in RUNTIMES {
        if !Project::has(program) {
            report(&format!("left out: there is no {program}"));
            continue;
        }
        let mut readme = project.command(program);
        readme.args(arguments.iter().chain(&["readme.mjs"])).env("UPSTASH_REDIS_REST_URL", rest.url());
        let said = Project::run(readme.env("UPSTASH_REDIS_REST_TOKEN", rest.token()));
        assert!(said.starts_with("welcome, ann@example.org! (attempt 1)\nnext\n"), "{program}: {said}");
        assert!(said.contains("acked: 1"), "{program}: {said}");
    }
}

/// The package, in a project that has nothing else; `None` where it cannot be made.
fn project() -> Option<Project> {
    for program in ["node", "npm"] {
        if !Project::has(program) {
            return missing(&format!("{program} is missing: install Node 20 or later"));
        }
    }
    let project = Project::new();
    let built = match package(&project.path().join("package"), None) {
        Ok(built) => built,
        Err(Failure::Module(why @ delayline_bundle::Failure::NoTarget { .. })) => {
            return missing(&why.to_string());
        }
        Err(why) => panic!("{why}"),
    };
    report(&built.to_string());
    let packed = Project::run(project.command("npm").args(["pack", "--silent"]).arg(&built.directory));
    let tarball = format!("./{}", packed.trim());
    project.write("package.json", r#"{ "private": true, "type": "module" }"#);
    Project::run(project.command("npm").args(["install", "--silent", &tarball, TYPESCRIPT]));
    Some(project)
}

/// The example of the README, which is that of the package's own.
fn example() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let [readme, own] = ["README.md", "driver-wasm/npm/files/README.md"].map(|file| {
        let text = fs::read_to_string(root.join(file)).expect("a README");
        let example = text.split("```js\n").nth(1).and_then(|rest| rest.split("```").next());
        example.unwrap_or_else(|| panic!("{file} has no example")).to_owned()
    });
    assert_eq!(readme, own, "both READMEs have the same example");
    readme
}

fn browser() -> Option<String> {
    let named = env::var("DELAYLINE_BROWSER").ok();
    named.or_else(|| {
        ["chromium", "google-chrome"].into_iter().find(|name| Project::has(name)).map(String::from)
    })
}
