use std::process::Stdio;
use std::time::Duration;

use delayline_tokio::redis;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::program::{delayline, lines_of, signal};
use crate::redis_server::RedisServer;
use crate::service::send;

/// Every command that runs on, and what it says of itself.
const RUNS_ON: [(&[&str], &str); 4] = [
    (&["serve", "--listen", "127.0.0.1:0"], "listening on http://127.0.0.1:"),
    (&["rest", "--listen", "127.0.0.1:0", "--token", "t"], "listening on http://127.0.0.1:"),
    (&["consume", "q"], "consuming q from "),
    (&["pump"], "tending the queues in "),
];

const LOST: &str = "Redis cannot be reached";
const REGAINED: &str = "Redis is reached again";

/// A process whose log lines are read.
struct Heard {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
}

impl Heard {
    fn start(mut command: Command) -> Heard {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Heard { child, lines, said: Vec::new() }
    }

    /// Reads on until a line contains this, and returns that line.
    async fn says(&mut self, text: &str) -> String {
        let reading = async {
            loop {
                let line = self.lines.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("it ended without {text:?}: {:?}", self.said));
                self.said.push(line.clone());
                if line.contains(text) {
                    break line;
                }
            }
        };
        let found = timeout(Duration::from_secs(40), reading).await;
        found.unwrap_or_else(|_| panic!("it does not say {text:?}: {:?}", self.said))
    }

    /// What it says in all, until it ends.
    async fn ends(mut self) -> (Option<i32>, Vec<String>) {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            self.said.push(line);
        }
        (self.child.wait().await.unwrap().code(), self.said)
    }
}

/// The address in the line that says where it listens.
fn base(line: &str) -> String {
    format!("http://{}", line.split_once("http://").unwrap().1.split_once(',').unwrap().0)
}

fn times(text: &str, said: &[String]) -> usize {
    said.iter().filter(|line| line.contains(text)).count()
}

#[tokio::test]
async fn each_says_its_version_its_place_an_outage_its_end_and_its_stop_once() {
    for (words, says) in RUNS_ON {
        let mut redis = RedisServer::start(&[]).await;
        let mut heard = Heard::start(delayline(Some(&redis), words));
        let line = heard.says(says).await;
        assert!(line.contains(&format!("delayline {} ", env!("CARGO_PKG_VERSION"))), "{line}");
        assert!(line.contains("redis.sock"), "{line}");
        redis.kill();
        if words[0] == "rest" {
            // It speaks to Redis only when it is asked.
            let ping = format!("{}/ping", base(&line));
            let asked = || send(reqwest::Client::new().get(&ping).bearer_auth("t"));
            assert_eq!(asked().await.status, 503);
            assert_eq!(asked().await.status, 503);
            heard.says(LOST).await;
            redis.replace().await;
            crate::eventually("it is reached", async || (asked().await.status == 200).then_some(())).await;
        } else {
            heard.says(LOST).await;
            redis.replace().await;
        }
        heard.says(REGAINED).await;
        signal("-TERM", &heard.child).await;
        heard.says("SIGTERM: stopping").await;
        let (code, said) = heard.ends().await;
        assert_eq!(code, Some(0), "{said:?}");
        assert!(said.last().unwrap().contains("stopped"), "{said:?}");
        for once in [LOST, REGAINED, "stopping"] {
            assert_eq!(times(once, &said), 1, "{words:?} {once:?}: {said:?}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_redis_that_is_silent_on_connections_that_stay_is_told_of_once_and_so_is_its_return() {
    for (words, says) in RUNS_ON.into_iter().filter(|(words, _)| words[0] != "rest") {
        let redis = RedisServer::start(&[]).await;
        let mut heard = Heard::start(delayline(Some(&redis), words));
        heard.says(says).await;
        redis.pause();
        heard.says(LOST).await;
        redis.resume();
        heard.says(REGAINED).await;
        signal("-TERM", &heard.child).await;
        let (code, said) = heard.ends().await;
        assert_eq!(code, Some(0), "{said:?}");
        for once in [LOST, REGAINED] {
            assert_eq!(times(once, &said), 1, "{words:?} {once:?}: {said:?}");
        }
    }
}

/// A Redis begins to refuse the publishers of a service, and takes them again. The service says so once, and why.
async fn refusal_is_told_once(begin: &[&str], end: &[&str], says: &str, why: &str) {
    let redis = RedisServer::start(&[]).await;
    let mut connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    let mut tell = |words: &[&str]| redis::cmd(words[0]).arg(&words[1..]).exec(&mut connection).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--timeout", "1s"];
    let mut heard = Heard::start(delayline(Some(&redis), &serve));
    let line = heard.says("listening on http://").await;
    let jobs = format!("{}/v1/queues/q/jobs", base(&line));
    let publish = async || send(reqwest::Client::new().post(&jobs).body("1")).await.status.as_u16();
    assert_eq!(publish().await, 201);
    tell(begin);
    assert_eq!([publish().await, publish().await, publish().await], [503, 503, 503]);
    let line = heard.says(says).await;
    assert!(line.contains("redis.sock") && line.contains(why), "{line}");
    tell(end);
    crate::eventually("it goes on", async || (publish().await == 201).then_some(())).await;
    signal("-TERM", &heard.child).await;
    let (code, said) = heard.ends().await;
    assert_eq!(code, Some(0), "{said:?}");
    assert_eq!(times(says, &said), 1, "{said:?}");
}

#[tokio::test]
async fn a_primary_that_became_a_replica_is_told_of_once() {
    let (begin, end) = (["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]);
    refusal_is_told_once(&begin, &end, "connecting anew, in case another serves by now", "a replica").await;
}

#[tokio::test]
async fn a_redis_that_is_full_is_told_of_once() {
    let (begin, end) = (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]);
    refusal_is_told_once(&begin, &end, "Redis refuses: trying again", "out of memory").await;
}

#[tokio::test]
async fn a_redis_that_denies_a_command_is_told_of_once() {
    let [begin, end] = ["-evalsha", "+evalsha"].map(|right| ["ACL", "SETUSER", "default", right]);
    refusal_is_told_once(&begin, &end, "Redis refuses: trying again", "ACL").await;
}

#[tokio::test]
async fn whoever_runs_on_waits_for_its_redis_and_ends_once_the_time_is_over() {
    for (words, says) in RUNS_ON {
        let mut redis = RedisServer::start(&[]).await;
        redis.kill();
        let limited = delayline(Some(&redis), &[words, &["--connect-timeout", "600ms"]].concat());
        let (code, said) = Heard::start(limited).ends().await;
        assert_eq!(code, Some(3), "{said:?}");
        assert!(said.iter().any(|line| line.contains(LOST)), "{said:?}");
        assert!(said.last().unwrap().contains(" cannot be reached: Connection refused"), "{said:?}");
        let mut waiting =
            Heard::start(delayline(Some(&redis), &[words, &["--connect-timeout", "60s"]].concat()));
        waiting.says(LOST).await;
        redis.replace().await;
        waiting.says(says).await;
        signal("-TERM", &waiting.child).await;
        assert_eq!(waiting.ends().await.0, Some(0));
        redis.kill();
        let mut stopped =
            Heard::start(delayline(Some(&redis), &[words, &["--connect-timeout", "60s"]].concat()));
        stopped.says(LOST).await;
        signal("-TERM", &stopped.child).await;
        let (code, said) = stopped.ends().await;
        assert_eq!(code, Some(0), "{said:?}");
    }
}

#[tokio::test]
async fn the_level_and_the_format_are_said_by_a_flag_a_variable_or_rust_log() {
    let redis = RedisServer::start(&[]).await;
    let pump = ["pump", "--for", "1ms"];
    for (more, variables, lines) in [
        (&[][..], &[][..], true),
        (&["--log-level", "off"], &[], false),
        (&["--log-level", "warn"], &[("RUST_LOG", "debug")], false),
        (&[], &[("DELAYLINE_LOG_LEVEL", "error")], false),
        (&["--log-level", "debug"], &[("DELAYLINE_LOG_LEVEL", "error")], true),
        (&[], &[("RUST_LOG", "off")], false),
        (&[], &[("RUST_LOG", "delayline=info")], true),
        (&[], &[("RUST_LOG", "")], true),
    ] {
        let mut command = delayline(Some(&redis), &[&pump, more].concat());
        let output = command.envs(variables.iter().copied()).output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{more:?} {variables:?}: {said}");
        assert_eq!(said.contains("tending the queues"), lines, "{more:?} {variables:?}: {said}");
    }
    let wrong = delayline(Some(&redis), &["pump", "--log-level", "inof"]).output().await.unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    for words in [&["--json"][..], &["--log-format", "json"]] {
        let output = delayline(Some(&redis), &[&pump, words].concat()).output().await.unwrap();
        let lines: Vec<Value> = lines_of(&output.stderr);
        let message = lines[0]["fields"]["message"].as_str().unwrap();
        assert!(message.contains("tending the queues"), "{lines:?}");
        assert!(lines[0]["timestamp"].is_string() && lines[0]["level"] == "INFO", "{lines:?}");
    }
    let text = delayline(Some(&redis), &["pump", "--for", "1ms", "--json", "--log-format", "text"]).output();
    let text = String::from_utf8(text.await.unwrap().stderr).unwrap();
    assert!(!text.starts_with('{') && text.contains("INFO"), "{text}");
}

#[tokio::test]
async fn requests_have_a_line_each_if_asked_and_refusals_one_a_minute() {
    let mut redis = RedisServer::start(&[]).await;
    for each in [false, true] {
        let access = if each { &["--access-log"][..] } else { &[] };
        let words = [&["serve", "--listen", "127.0.0.1:0", "--timeout", "200ms"][..], access].concat();
        let mut heard = Heard::start(delayline(Some(&redis), &words));
        let line = heard.says("listening on http://").await;
        let address = line.split_once("http://").unwrap().1.split_once(',').unwrap().0.to_owned();
        let http = reqwest::Client::new();
        let publish = || send(http.post(format!("http://{address}/v1/queues/q/jobs?secret=s")).body("1"));
        redis.kill();
        for _ in 0..5 {
            assert_eq!(publish().await.status, 400);
        }
        let publish = || send(http.post(format!("http://{address}/v1/queues/q/jobs")).body("1"));
        for _ in 0..5 {
            // Out of reach, or what became of the publish cannot be known.
            let status = publish().await.status.as_u16();
            assert!([503, 504].contains(&status), "{status}");
        }
        signal("-TERM", &heard.child).await;
        let (_, said) = heard.ends().await;
        let refusals = times("requests are refused", &said);
        assert!((1..=2).contains(&refusals), "{said:?}");
        let requests = times("a request was answered", &said);
        assert_eq!(requests, if each { 10 } else { 0 }, "{said:?}");
        assert!(!said.iter().any(|line| line.contains("secret")), "{said:?}");
        redis.replace().await;
    }
}
