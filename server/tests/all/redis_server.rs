use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A Redis of its own behind a Unix socket; it ends when this is dropped.
pub(crate) struct RedisServer {
    process: Child,
    directory: TempDir,
}

impl RedisServer {
    pub(crate) async fn start(arguments: &[&str]) -> RedisServer {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("redis.sock");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(&socket)
            .args(arguments)
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("these tests need redis-server: apt-get install redis-server");
        let server = RedisServer { process, directory };
        crate::eventually("redis-server listens", async || socket.exists().then_some(())).await;
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.directory.path().join("redis.sock").display())
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
