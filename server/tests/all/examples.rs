use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use clap::{Command, CommandFactory};
use delayline::Cli;
use delayline_tokio::{Client, FlightRecorder};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::certificates::Authority;
use crate::program::{DELAYLINE, clean, signal, write};
use crate::redis_server::RedisServer;
use crate::service::Service;

const JOBS: &str = "{\"payload\":{\"to\":\"kim\"},\"id\":\"kim:1\"}\n{\"payload\":\"hi\",\"encoding\":\"text\",\"id\":\"lee:1\"}\n";

/// Jobs of every state, for the examples of the help texts.
const PREPARED: &str = r#"
delayline publish welcome x --id held:1
delayline consume welcome --lease 1h --count 1 --exec 'kill -KILL $PPID'
delayline publish welcome --ndjson <<'END'
{"payload":"x","id":"bad:1","attempts":1}
{"payload":"x","id":"bad:2","attempts":1}
END
delayline consume welcome --count 2 --exec false
delayline publish welcome --ndjson <<'END'
{"payload":{"to":"ann"},"id":"ann:1","delay":"1h"}
{"payload":{"to":"bob"},"id":"bob:1","delay":"1h"}
{"payload":{"to":"eve"}}
{"payload":{"to":"joe"}}
END
"#;

/// A Redis with nothing in it, and a folder with what the examples read.
struct Place {
    redis: RedisServer,
    folder: TempDir,
}

impl Place {
    async fn new() -> Place {
        let (redis, folder) = (RedisServer::start(&[]).await, tempfile::tempdir().unwrap());
        write(folder.path(), "jobs.ndjson", JOBS);
        write(folder.path(), "keys", "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=\n");
        write(folder.path(), "report.json", "{\"month\":11}");
        write(folder.path(), "delayline.toml", "[serve]\ntimeout = \"10s\"\n");
        let authority = Authority::new();
        authority.issue().write(folder.path());
        write(folder.path(), "clients.pem", &authority.pem());
        record(&folder.path().join("orders.recording")).await;
        let script = write(folder.path(), "send.sh", "#!/bin/sh\necho \"sent $(cat)\"\n");
        executable(Path::new(&script));
        Place { redis, folder }
    }

    /// A shell in which `delayline` is the built program, the default Redis is this one, and the default port is free.
    fn shell(&self, line: &str) -> tokio::process::Command {
        let programs = Path::new(DELAYLINE).parent().unwrap().display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let line = line.replace("redis://127.0.0.1/", &self.redis.url());
        let line = line.replace("127.0.0.1:4848", "127.0.0.1:0").replace("127.0.0.1:8079", "127.0.0.1:0");
        let line = line.replace("127.0.0.1:7777", "127.0.0.1:0").replace("127.0.0.1:7778", "127.0.0.1:0");
        let mut shell = clean("sh");
        shell.current_dir(self.folder.path()).arg("-c").arg(line).env("PATH", path);
        shell.env("DELAYLINE_REDIS_URL", self.redis.url()).env("DELAYLINE_LISTEN", "127.0.0.1:0");
        shell.env("DELAYLINE_REST_LISTEN", "127.0.0.1:0");
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    }

    /// Runs a line as it stands, and checks its exit; one that runs for ever is told to stop once it has said something.
    async fn runs(&self, line: &str) {
        let code = line.split_once("# exit ").map_or(0, |(_, code)| code.trim().parse().unwrap());
        if !runs_for_ever(line) {
            let output = self.shell(line).output();
            let output = timeout(Duration::from_secs(60), output).await.expect(line).unwrap();
            assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
            return;
        }
        let mut child = self.shell(&format!("exec {line}")).spawn().unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let alive = async {
            tokio::select! {
                said = heard(&mut out) => said,
                said = heard(&mut err) => said,
            }
        };
        let said = timeout(Duration::from_secs(30), alive).await.expect(line);
        assert!(!said.is_empty(), "{line} ended");
        signal("-TERM", &child).await;
        let ((), (), status) = tokio::join!(rest(out), rest(err), child.wait());
        assert_eq!(status.unwrap().code(), Some(code), "{line}: {}", String::from_utf8_lossy(&said));
    }
}

/// A recording of a client that published a job.
async fn record(path: &Path) {
    let recorder = FlightRecorder::new(1 << 20);
    let builder = Client::builder().flight_recorder(recorder.clone());
    let client = builder.connect("memory://").await.unwrap();
    let welcome = client.queue::<String>("welcome").unwrap();
    welcome.publish(&"ann".to_owned()).id("ann:1").await.unwrap();
    recorder.save(path).unwrap();
    client.close().await;
}

async fn heard(from: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut said = vec![0; 4096];
    let read = from.read(&mut said).await.unwrap();
    said.truncate(read);
    if said.is_empty() { std::future::pending().await } else { said }
}

async fn rest(mut from: impl AsyncRead + Unpin) {
    let _ = from.read_to_end(&mut Vec::new()).await;
}

fn executable(script: &Path) {
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn runs_for_ever(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.get(1).copied() {
        _ if words[0] != "delayline" => false,
        Some("serve") => true,
        Some("rest") => words.contains(&"--token"),
        Some("pump") => !words.contains(&"--for"),
        Some("push") => !words.contains(&"--public-keys"),
        Some("consume") => !words.contains(&"--count"),
        Some("stats") => words.contains(&"--watch"),
        _ => false,
    }
}

/// The lines within the fences of this language.
fn fenced<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let mut lines = Vec::new();
    let mut within = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), within) {
            (Some(_), Some(_)) => within = None,
            (Some(opened), None) => within = Some(opened),
            (None, Some(opened)) if opened == language => lines.push(line),
            _ => {}
        }
    }
    lines
}

fn document(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[tokio::test]
async fn every_line_of_the_documentation_runs() {
    let text = document("docs/cli.md");
    let lines = fenced(&text, "sh");
    assert!(lines.len() > 40, "{lines:?}");
    let place = Place::new().await;
    for line in lines {
        place.runs(line).await;
    }
}

#[tokio::test]
async fn every_line_of_the_readme_runs() {
    let text = document("README.md");
    let lines: Vec<&str> =
        fenced(&text, "sh").into_iter().filter(|line| line.starts_with("delayline ")).collect();
    assert!(lines.len() > 3, "{lines:?}");
    let place = Place::new().await;
    for line in lines {
        place.runs(line).await;
    }
}

/// Each document's lines in one shell, in their order, against a service in memory.
#[tokio::test]
async fn every_line_for_curl_runs() {
    let mut run = 0;
    for path in ["README.md", "docs/getting-started.md"] {
        let text = document(path);
        let lines = fenced(&text, "sh").into_iter().filter(|line| line.contains("curl "));
        let lines: Vec<&str> = lines.collect();
        let service = Service::start().await;
        let address = service.base.trim_start_matches("http://");
        let lines_there = lines.join("\n").replace("localhost:4747", address);
        let script = format!("curl() {{ command curl -sS --fail-with-body \"$@\"; }}\n{lines_there}");
        let mut shell = clean("sh");
        shell.args(["-eu", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = timeout(Duration::from_secs(60), shell.output()).await.expect(path).unwrap();
        assert!(output.status.success(), "{path}: {output:?}");
        service.stop().await;
        run += lines.len();
    }
    assert!(run >= 11, "{run} lines");
}

/// In one shell, in their order, at a free port.
#[tokio::test]
async fn every_line_for_tls_and_tokens_runs() {
    let text = document("README.md");
    // Below those that the system gives out, so that no other test has it by the time the service listens.
    let port = (24_000..25_000_u16).find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok()).unwrap();
    let there = format!("localhost:{port}");
    let lines = fenced(&text, "bash").join("\n").replace("localhost:4747", &there);
    let waits = format!("&\nuntil curl -k https://{there}/healthz; do sleep 0.1; done");
    let (before, after) = lines.split_once('&').expect("the service runs beside its clients");
    let script = format!(
        "curl() {{ command curl -sS --fail-with-body \"$@\"; }}\ntrap 'kill $!' EXIT\n{}{waits}{after}\n",
        before.replace("0.0.0.0:4747", &format!("0.0.0.0:{port}")),
    );
    let place = Place::new().await;
    let output = timeout(Duration::from_secs(60), place.shell(&format!("set -eu\n{script}")).output());
    let output = output.await.expect("an end").unwrap();
    let (said, logged) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("\"due\":"), "{said}{logged}");
    assert!(logged.contains("listening on https://"), "{logged}");
}

#[test]
fn every_command_is_documented() {
    let text = document("docs/cli.md");
    let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    for command in Cli::command().get_subcommands().map(Command::get_name) {
        let is_told = headings.iter().any(|heading| heading.split([' ', ',']).any(|word| word == command));
        assert!(is_told, "{command} is not in {headings:?}");
    }
}

#[tokio::test]
async fn every_example_of_the_help_texts_runs() {
    let mut examples = Vec::new();
    collect(&Cli::command(), &mut examples);
    assert!(examples.len() > 40, "{examples:?}");
    let place = Place::new().await;
    for example in examples {
        assert!(example.starts_with("delayline "), "{example}");
        place
            .runs("delayline queues | while read -r queue; do delayline destroy \"$queue\" --yes; done")
            .await;
        place.runs(PREPARED).await;
        place.runs(&example).await;
    }
}

fn collect(command: &Command, examples: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    examples.extend(lines.take_while(|line| !line.is_empty()).map(|line| line.trim().to_string()));
    for inner in command.get_subcommands() {
        collect(inner, examples);
    }
}
