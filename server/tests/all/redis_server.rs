use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use delayline_tokio::redis::{Client, FromRedisValue, cmd};
use tempfile::TempDir;

/// A Redis of its own behind a Unix socket; it ends when this is dropped.
pub(crate) struct RedisServer {
    process: Child,
    directory: TempDir,
}

impl RedisServer {
    pub(crate) async fn start(arguments: &[&str]) -> RedisServer {
        let directory = tempfile::tempdir().unwrap();
        let process = spawn(directory.path(), arguments).await;
        RedisServer { process, directory }
    }

    /// Until somebody listens to notifications.
    pub(crate) async fn is_listened_to(&self) {
        let mut connection =
            Client::open(self.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
        let mut channels = cmd("PUBSUB");
        channels.arg("CHANNELS");
        crate::eventually("somebody listens", async || {
            let names: Vec<String> = channels.query_async(&mut connection).await.unwrap();
            (!names.is_empty()).then_some(())
        })
        .await;
    }

    /// Its answer to a command, over a connection of the test's own.
    pub(crate) async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut connection =
            Client::open(self.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
        let (name, arguments) = words.split_first().unwrap();
        cmd(name).arg(arguments).query_async(&mut connection).await.unwrap()
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    /// Kills it, and starts an empty one in its place.
    pub(crate) async fn replace(&mut self) {
        self.kill();
        self.process = spawn(self.directory.path(), &[]).await;
    }

    /// Kills it, and starts it again with what it has on disk.
    pub(crate) async fn restart(&mut self, arguments: &[&str]) {
        self.kill();
        self.process = spawn(self.directory.path(), arguments).await;
    }

    /// It answers nothing more, and its connections stay.
    #[cfg(unix)]
    pub(crate) fn pause(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// It goes on after a pause.
    #[cfg(unix)]
    pub(crate) fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    #[cfg(unix)]
    fn signal(&self, which: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.process), which).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn spawn(directory: &Path, arguments: &[&str]) -> Child {
    let socket = directory.join("redis.sock");
    let _ = std::fs::remove_file(&socket);
    let process = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&socket)
        .args(arguments)
        .current_dir(directory)
        .stdout(Stdio::null())
        .spawn()
        .expect("these tests need redis-server: apt-get install redis-server");
    let client = Client::open(format!("redis+unix://{}", socket.display())).unwrap();
    crate::eventually("redis-server listens", async || client.get_multiplexed_async_connection().await.ok())
        .await;
    process
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
