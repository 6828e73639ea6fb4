//! The roles of deploy/compose.yml as processes: what it says is started, and every job is accounted for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use delayline_tokio::redis;
use reqwest::{Client, RequestBuilder, StatusCode};
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;
use tokio::time::{Duration, timeout};

use crate::eventually;
use crate::program::{DELAYLINE, clean, signal};
use crate::receiver::{Receiver, Reply};

const JOBS: usize = 200;
/// What each service of the compose file that answers requests listens on.
const LISTENS: &str = "0.0.0.0:4747";
const REDIS: &str = "redis:6379";
/// How the compose file asks its environment for the token that makes others.
const ASKS_FOR_TOKEN: &str = "${DELAYLINE_TOKEN:?make one by `openssl rand -hex 32`}";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A service of the compose file, as far as a process can be it.
#[derive(Clone, Debug)]
struct Role {
    command: Vec<String>,
    environment: BTreeMap<String, String>,
    after: BTreeSet<String>,
}

/// The processes of a deployment, in the order in which they were started.
struct Deployment {
    folder: TempDir,
    running: Vec<(String, Child)>,
    /// Where each that answers requests is reached.
    services: BTreeMap<String, String>,
    redis: String,
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

fn text(yaml: &Yaml<'_>) -> String {
    yaml.as_str().unwrap_or_else(|| panic!("not a text: {yaml:?}")).replace("$$", "$")
}

/// The value of a mapping, its own or that of the mapping that it merges.
fn field<'a>(of: &'a Yaml<'a>, name: &str) -> Option<&'a Yaml<'a>> {
    of.as_mapping_get(name).or_else(|| of.as_mapping_get("<<")?.as_mapping_get(name))
}

fn roles() -> BTreeMap<String, Role> {
    let file = std::fs::read_to_string(deploy().join("compose.yml")).unwrap();
    let documents = Yaml::load_from_str(&file).unwrap();
    let services = documents[0].as_mapping_get("services").and_then(Yaml::as_mapping).expect("services");
    let role = |service: &Yaml<'_>| Role {
        command: field(service, "command")
            .and_then(Yaml::as_sequence)
            .expect("a command")
            .iter()
            .map(text)
            .collect(),
        environment: field(service, "environment")
            .and_then(Yaml::as_mapping)
            .map(|variables| variables.iter().map(|(name, value)| (text(name), text(value))).collect())
            .unwrap_or_default(),
        after: field(service, "depends_on")
            .and_then(Yaml::as_mapping)
            .map(|others| others.iter().map(|(name, _)| text(name)).collect())
            .unwrap_or_default(),
    };
    services.iter().map(|(name, service)| (text(name), role(service))).collect()
}

/// Those that wait for others come after them.
fn in_order(mut roles: BTreeMap<String, Role>) -> Vec<(String, Role)> {
    let mut ordered: Vec<(String, Role)> = Vec::new();
    while !roles.is_empty() {
        let is_startable =
            |role: &Role| role.after.iter().all(|name| ordered.iter().any(|(started, _)| started == name));
        let next = roles.iter().find(|(_, role)| is_startable(role)).map(|(name, _)| name.clone());
        let next = next.unwrap_or_else(|| panic!("these wait for each other: {roles:?}"));
        let role = roles.remove(&next).expect("it is there");
        ordered.push((next, role));
    }
    ordered
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Deployment {
    /// Starts all that the compose file names, each once what it depends on answers.
    async fn start() -> Deployment {
        let folder = tempfile::tempdir().unwrap();
        let redis = format!("127.0.0.1:{}", free_port());
        let mut deployment = Deployment { folder, running: Vec::new(), services: BTreeMap::new(), redis };
        for (name, role) in in_order(roles()) {
            deployment.run(name, &role).await;
        }
        deployment
    }

    async fn run(&mut self, name: String, role: &Role) {
        let address = format!("127.0.0.1:{}", free_port());
        let data = self.folder.path().join(&name);
        std::fs::create_dir(&data).unwrap();
        let here = |text: &String| {
            text.replace(REDIS, &self.redis)
                .replace(LISTENS, &address)
                .replace(ASKS_FOR_TOKEN, TOKEN)
                .replace("/etc/delayline", &deploy().display().to_string())
                .replace("/data", &data.display().to_string())
        };
        let words: Vec<String> = role.command.iter().map(here).collect();
        let is_redis = words[0] == "redis-server";
        let mut command = clean(if is_redis { "redis-server" } else { DELAYLINE });
        command.args(&words[usize::from(is_redis)..]).current_dir(&data);
        command.envs(role.environment.iter().map(|(name, value)| (name, here(value))));
        // The receiver of these pushes is on this machine.
        command.env("DELAYLINE_PUSH_ALLOW", "127.0.0.0/8");
        if is_redis {
            let (host, port) = self.redis.split_once(':').unwrap();
            command.args(["--bind", host, "--port", port]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.running.push((name.clone(), command.spawn().unwrap()));
        if is_redis {
            let url = self.url("health");
            eventually("Redis answers", async || {
                let client = redis::Client::open(&*url).unwrap();
                let mut connection = client.get_multiplexed_async_connection().await.ok()?;
                redis::cmd("PING").query_async::<String>(&mut connection).await.ok()
            })
            .await;
        }
        if role.command.iter().any(|word| word == LISTENS) {
            let base = format!("http://{address}");
            eventually("the service is ready", async || {
                let answer = reqwest::get(format!("{base}/readyz")).await.ok()?;
                (answer.status() == StatusCode::OK).then_some(())
            })
            .await;
            self.services.insert(name, base);
        }
    }

    fn url(&self, user: &str) -> String {
        format!("redis://{user}:CHANGE-ME@{}/", self.redis)
    }

    /// The ids that the worker wrote, in its order.
    fn done(&self) -> Vec<String> {
        let done = std::fs::read_to_string(self.folder.path().join("worker/done")).unwrap_or_default();
        done.lines().map(str::to_owned).collect()
    }

    /// Tells each to stop, the last first; all end well.
    async fn stop(mut self) {
        while let Some((name, mut process)) = self.running.pop() {
            signal("-TERM", &process).await;
            let ended = timeout(Duration::from_secs(60), process.wait()).await;
            let ended = ended.unwrap_or_else(|_| panic!("{name} does not stop")).unwrap();
            assert!(ended.success(), "{name}: {ended}");
        }
    }
}

/// A request with a token, which must be answered by this status.
async fn asks(request: RequestBuilder, token: &str, status: StatusCode) -> Value {
    let answer = request.bearer_auth(token).send().await.unwrap();
    let (found, text) = (answer.status(), answer.text().await.unwrap());
    assert_eq!(found, status, "{text}");
    serde_json::from_str(&text).unwrap_or_default()
}

#[tokio::test]
async fn every_job_is_done_once_by_the_roles_of_the_compose_file() {
    let receiver = Receiver::always(Reply::status(204)).await;
    let deployment = Deployment::start().await;
    let http = Client::new();
    let services: Vec<&String> = deployment.services.values().collect();
    assert!(services.len() >= 2, "{services:?}");
    let made = json!({ "scopes": ["publish"], "queues": ["welcome", "hooks"] }).to_string();
    let made =
        asks(http.post(format!("{}/v1/tokens", services[0])).body(made), TOKEN, StatusCode::CREATED).await;
    let publisher = made["token"].as_str().expect("a token");
    let push = json!({ "push": { "url": format!("http://{}/", receiver.address) } }).to_string();
    let config = format!("{}/v1/queues/hooks/config", services[0]);
    asks(http.put(&config).body(push.clone()), TOKEN, StatusCode::OK).await;
    // Another service hears of a token within 5 s; until then it lets nobody in by it.
    let other = format!("{}/v1/queues/welcome/jobs/none", services[1]);
    eventually("all services know the token", async || {
        let answer = http.delete(&other).bearer_auth(publisher).send().await.unwrap();
        (answer.status() == StatusCode::NOT_FOUND).then_some(())
    })
    .await;
    asks(http.put(&config).body(push), publisher, StatusCode::FORBIDDEN).await;
    asks(http.post(format!("{}/v1/take?queue=welcome", services[1])), publisher, StatusCode::FORBIDDEN).await;

    for (n, base) in (0..JOBS).zip(services.iter().cycle()) {
        let delay = if n % 2 == 0 { "0s" } else { "300ms" };
        for queue in ["welcome", "hooks"] {
            let url = format!("{base}/v1/queues/{queue}/jobs?id=job-{n}&delay={delay}");
            asks(http.post(url).body("{}"), publisher, StatusCode::CREATED).await;
        }
    }
    let mut ids: Vec<String> = (0..JOBS).map(|n| format!("job-{n}")).collect();
    ids.sort();
    for queue in ["welcome", "hooks"] {
        let url = format!("{}/v1/queues/{queue}", services[1]);
        let audited = eventually("all are acknowledged", async || {
            let found = asks(http.get(&url), TOKEN, StatusCode::OK).await;
            (found["counters"]["acked"] == JOBS).then_some(found)
        })
        .await;
        assert_eq!(audited["counters"]["published"], JOBS);
        for state in ["ready", "delayed", "leased", "dead"] {
            assert_eq!(audited["sizes"][state], 0, "{audited}");
        }
    }
    let mut done = deployment.done();
    done.sort();
    assert_eq!(done, ids, "each once");
    let mut pushed: Vec<String> =
        receiver.requests().into_iter().map(|request| request.id().to_owned()).collect();
    pushed.sort();
    pushed.dedup();
    assert_eq!(pushed.len(), JOBS, "{pushed:?}");
    deployment.stop().await;
}

/// What the users of the deployment may do is what docs/production.md says is needed, no more and no less.
#[test]
fn the_users_are_those_of_the_guide() {
    let guide = include_str!("../../../docs/production.md");
    let needed = guide.lines().find_map(|line| line.strip_prefix("ACL SETUSER delayline ")).expect("a user");
    let users = std::fs::read_to_string(deploy().join("users.acl")).unwrap();
    let mut named = BTreeSet::new();
    for line in users.lines().filter(|line| line.contains("+evalsha")) {
        let (name, rights) = line.strip_prefix("user ").and_then(|line| line.split_once(' ')).unwrap();
        assert_eq!(rights, needed, "{name}");
        named.insert(name);
    }
    let used = roles().into_values().filter_map(|role| {
        let url = role.environment.get("DELAYLINE_REDIS_URL")?.clone();
        Some(url.strip_prefix("redis://")?.split_once(':')?.0.to_owned())
    });
    assert_eq!(used.collect::<BTreeSet<_>>(), named.into_iter().map(str::to_owned).collect());
}
