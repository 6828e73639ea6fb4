use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use delayline_tokio::redis;

/// A Redis of a test's own, on a free port, that keeps its data over restarts.
pub(crate) struct Server {
    port: u16,
    dir: PathBuf,
    options: Vec<String>,
    process: Option<Child>,
}

impl Server {
    pub(crate) fn spawn() -> Server {
        Server::with(&[])
    }

    pub(crate) fn with(options: &[&str]) -> Server {
        let port = free_port();
        let dir = std::env::temp_dir().join(format!("delayline-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Server { port, dir, options, process: None };
        server.start();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// What was given for this option.
    pub(crate) fn option(&self, name: &str) -> &str {
        let place = self.options.iter().position(|option| option == name).unwrap();
        &self.options[place + 1]
    }

    pub(crate) fn socket(&self) -> String {
        self.dir.join("socket").display().to_string()
    }

    pub(crate) fn start(&mut self) {
        let port = self.port.to_string();
        let socket = self.socket();
        let dir = self.dir.display().to_string();
        let fixed =
            ["--port", &port, "--unixsocket", &socket, "--dir", &dir, "--save", "", "--appendonly", "yes"];
        let spawned = Command::new("redis-server")
            .args(fixed)
            .args(["--appendfsync", "always", "--bind", "127.0.0.1"])
            .args(&self.options)
            .stdout(Stdio::null())
            .spawn();
        self.process = Some(spawned.unwrap_or_else(|error| {
            panic!("these tests need redis-server on the PATH ({error}): apt-get install redis-server")
        }));
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// As a crash does it: no farewell, connections reset.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Stands still, connections open, as a machine that is paused.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

/// Tells the server something, and answers what it said, if that is a text.
pub(crate) async fn admin(server: &Server, words: &[&str]) -> String {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    let said: redis::Value = command.query_async(&mut connection).await.unwrap();
    redis::from_redis_value(said).unwrap_or_default()
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
